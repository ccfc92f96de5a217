#!/usr/bin/env python3
"""The pictures of README.md, from a run of pipelines/ppo.toml that takes a minute or two.

    python3 bench/pictures.py [--run FOLDER] [docs/pictures]

Runs the pipeline on a terminal of its own, with samples recorded, and draws into the folder:

    display.svg                         what the terminal showed while the run went on
    samples.svg                         `rlhf-run samples`, with tokens coloured by their advantage
    report-light.png, report-dark.png   the top of `rlhf-run report`
    graph.svg                           `rlhf-run graph`

The terminal's bytes are drawn as they came. Needs chromium and Graphviz (dot). --run: keeps the run in that folder, or takes the
one that is there.
"""

import argparse
import fcntl
import html
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import unicodedata

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
COLUMNS, ROWS = 141, 24
SHOWN_FROM, SHOWN_ROWS = 96, 16  # of the run, from this iteration on
MOST_BYTES, MOST_BYTES_IN_ALL = 200_000, 600_000
LAYER = """extends = "builtin:ppo"

[nodes.samples]
type = "write_jsonl"
inputs = ["advantages"]
fields = ["prompt", "label", "response", "score", "tokens", "advantages"]
"""

# A terminal's colours, of which the page of the report has some: each stands out on the ground.
GROUND, INK, DIM = "#10151b", "#e7ecf2", "#a3afbd"
COLOURS = {"31": "#ff9d80", "32": "#63d6a1", "33": "#e6c75a", "36": "#7cbcff", "2": DIM}
CELL, LINE, SIZE, MARGIN = 8.4, 20, 14, 16
HARD_SPACE = "\u00a0"  # browsers draw several as one else


def on_terminal(words, folder):
    """All that a terminal gets of the program."""
    master, slave = pty.openpty()
    fcntl.ioctl(master, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
    environment = ({name: text for name, text in os.environ.items() if name != "NO_COLOR"} |
                   {"TERM": "xterm-256color", "LC_ALL": "C.UTF-8"})
    process = subprocess.Popen([PROGRAM, *words], cwd=folder, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env=environment)
    os.close(slave)
    content = b""
    try:
        while piece := os.read(master, 65536):
            content += piece
    except OSError:  # the other end is closed
        pass
    os.close(master)
    if process.wait() != 0:
        sys.exit(f"{' '.join(words)}\n{content.decode()}")
    return content.decode()


class Screen:
    """Lines of (text, colour, background, bold), as far as the program steers a terminal: line ends, returns, erasing,
    colours."""

    def __init__(self, content):
        self.lines, self.pen = [[]], (INK, None, False)
        for part in re.findall(r"\x1b\[[0-9;?]*[A-Za-z]|\r\n|\r|\n|[^\x1b\r\n]+", content):
            if part in ("\r\n", "\n"):
                self.lines.append([])
            elif part == "\r" or part.endswith("K"):
                self.lines[-1] = []
            elif part.endswith("m"):
                self.take(part[2:-1].split(";"))
            elif not part.startswith("\x1b"):
                self.lines[-1].append((part, *self.pen))

    def take(self, codes):
        colour, background, bold = self.pen
        while codes:
            code = codes.pop(0)
            if code in ("38", "48"):
                shade = shade_of(int(codes[1]))
                colour, background = (shade, background) if code == "38" else (colour, shade)
                codes = codes[2:]
            elif code in ("0", ""):
                colour, background, bold = INK, None, False
            elif code == "1":
                bold = True
            else:
                colour = COLOURS[code]
        self.pen = (colour, background, bold)


def shade_of(number):
    """Of the 256 colours, those of the cube."""
    levels = [0, 95, 135, 175, 215, 255]
    number -= 16
    return "#" + "".join(f"{levels[number // weight % 6]:02x}" for weight in (36, 6, 1))


def cells(text):
    return sum(2 if unicodedata.east_asian_width(one) in "WF" else 1 for one in text)


def terminal_picture(command, lines):
    """An SVG of a terminal: the command that was typed, and below it these lines."""
    lines = [[("$ ", "#63d6a1", None, True), (command, INK, None, True)], *lines]
    width = max(sum(cells(text) for text, *_ in line) for line in lines) * CELL + 2 * MARGIN
    height = len(lines) * LINE + 2 * MARGIN
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height}" width="{width:.0f}" '
             f'height="{height}" role="img">', f"<title>{html.escape(command)}</title>",
             f'<rect width="100%" height="100%" rx="10" fill="{GROUND}"/>', '<g font-family="ui-monospace, SFMono-Regular, '
             f'Menlo, Consolas, \'DejaVu Sans Mono\', monospace" font-size="{SIZE}">']
    for row, line in enumerate(lines):
        x, y = MARGIN, MARGIN + row * LINE
        for text, colour, background, bold in line:
            wide = cells(text) * CELL
            if background:
                parts.append(f'<rect x="{x:.1f}" y="{y + 1}" width="{wide:.1f}" height="{LINE - 2}" fill="{background}"/>')
            if text.strip():
                weight = ' font-weight="700"' if bold else ""
                parts.append(f'<text x="{x:.1f}" y="{y + 14.5}" fill="{colour}" textLength="{wide:.1f}" '
                             f'lengthAdjust="spacingAndGlyphs"{weight}>{html.escape(text).replace(" ", HARD_SPACE)}</text>')
            x += wide
    return "\n".join([*parts, "</g>", "</svg>"]) + "\n"


def moment_of(content):
    """The screen when the live line told of an iteration in the middle of the run: the last rows of it."""
    frames = content.split("\r\x1b[K")
    for i, frame in enumerate(frames):
        told = re.search(r"iteration (\d+)/", re.sub(r"\x1b\[\d*m", "", frame).rpartition("\n")[2])
        if told and int(told.group(1)) >= SHOWN_FROM:
            return Screen("\r\x1b[K".join(frames[:i + 1])).lines[-SHOWN_ROWS:]
    sys.exit("the run never showed its line")


def screenshot(page, picture, scheme, folder):
    subprocess.run(["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
                    f"--user-data-dir={folder}/browser", "--window-size=1240,936",
                    f"--blink-settings=preferredColorScheme={scheme}", "--virtual-time-budget=4000", f"--screenshot={picture}",
                    f"file://{page}"], check=True, capture_output=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", type=pathlib.Path)
    parser.add_argument("into", type=pathlib.Path, nargs="?", default=ROOT / "docs/pictures")
    arguments = parser.parse_args()
    for program in ("chromium", "dot"):
        if not shutil.which(program):
            sys.exit(f"{program} is not installed")
    into = arguments.into.resolve()
    into.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        folder = arguments.run.resolve() if arguments.run else pathlib.Path(temporary)
        folder.mkdir(parents=True, exist_ok=True)
        shown = folder / "display.txt"
        if not shown.exists():
            (folder / "ppo.toml").write_text(LAYER)
            shown.write_bytes(on_terminal(["run", "ppo.toml", "--run-dir", "runs/ppo", "--show-samples=40"], folder).encode())
        (into / "display.svg").write_text(terminal_picture("rlhf-run run ppo.toml --show-samples=40",
                                                           moment_of(shown.read_bytes().decode())))
        words = ["samples", "runs/ppo", "--iteration", "10", "--samples", "4"]
        (into / "samples.svg").write_text(terminal_picture(f"rlhf-run {' '.join(words)}",
                                                           Screen(on_terminal(words, folder).rstrip()).lines))
        subprocess.run([PROGRAM, "report", "runs/ppo", "-o", "report.html"], cwd=folder, check=True)
        for name, scheme in (("light", 1), ("dark", 0)):
            screenshot(folder / "report.html", into / f"report-{name}.png", scheme, temporary)
    graph = subprocess.run([PROGRAM, "graph", "pipelines/ppo.toml"], cwd=ROOT, check=True, capture_output=True).stdout
    (into / "graph.svg").write_bytes(subprocess.run(["dot", "-Tsvg"], input=graph, check=True, capture_output=True).stdout)
    sizes = {path.name: path.stat().st_size for path in sorted(into.iterdir())}
    print("\n".join(f"{size:8} {name}" for name, size in sizes.items()))
    if max(sizes.values()) > MOST_BYTES or sum(sizes.values()) > MOST_BYTES_IN_ALL:
        sys.exit(f"too large: {MOST_BYTES} bytes each, {MOST_BYTES_IN_ALL} in all")


if __name__ == "__main__":
    main()
