"""What the documentation shows is true: every block of TOML is validated, every block of C++ compiled, every command has the
subcommand and the options that it names, and a command with its output gives that output.

How a block is taken is said by its language, and by a comment that readers do not see, right above it:

  <!-- test: not run: WHY -->          left out
  <!-- test: file -->                  TOML: a whole pipeline; without a comment, one that has [pipeline], [budget] and [nodes.*],
                                       or `extends`
  <!-- test: over FILE ... -->         TOML: a layer over that pipeline; without a comment, over pipelines/ppo.toml
  <!-- test: in TABLE over FILE -->    TOML: keys of that table; each line alone with `each line in TABLE`
       ... without NAME,NAME           these tables of the base are removed first
       ... with KEY=VALUE              one --set; a last "with the plugin" loads the plugin that the page shows
  <!-- test: unit NAME ... -->         C++: all blocks of that name in a page are one piece of code. Lines that follow stand
                                       before it; where one of them is `...`, the block stands there
  <!-- test: plugin NAME -->           likewise, and the piece is a plugin: built, and its types listed by the program

  <!-- test: stands in FILE -->        C++: its lines are lines of that file, in this order; without a comment, of the one that
                                       the text above names last. Others may stand between them, and it may be indented
                                       otherwise

A block without a language is compared where it begins with `$ `; else it is output alone, of which this can be said:

  <!-- test: printed by COMMAND -->     all that its lines say COMMAND prints, but at other places of other files
"""

import concurrent.futures
import functools
import gzip
import json
import os
import pathlib
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

sys.path += [str(pathlib.Path(__file__).parent), str(pathlib.Path(__file__).parent / "quick_start")]
from docs_page import blocks_of, shown_commands, without_comment  # noqa: E402
from quick_start import run_program  # noqa: E402

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
COMPILER = os.environ.get("SLUICE_COMPILER", "c++")
PAGES = [path for path in (ROOT / "README.md", ROOT / "SECURITY.md", ROOT / "CONTRIBUTING.md",
                           *sorted((ROOT / "docs").rglob("*.md"))) if path.name != "nodes.md"]
TINY = ROOT / "pipelines/models/tiny-arithmetic"
BASE = "pipelines/ppo.toml"


def text_of(page):
    return page.read_text()


def name_of(page):
    return str(page.relative_to(ROOT))


@functools.cache
def all_blocks():
    return [block for page in PAGES for block in blocks_of(name_of(page), text_of(page))]


def rlhf_run(*words, cwd=ROOT, stdin=""):
    return run_program([PROGRAM, *words], cwd=cwd, stdin=stdin)


def side_by_side(function, items):
    """On all cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


def make_world(folder):
    """What the pages take for granted beside a pipeline: models, data, a scorer, a run."""
    (folder / "pipelines").symlink_to(ROOT / "pipelines")
    work = folder / "work"
    for name in ("data/maths", "data/code", "models", "build", "runs/reward_model/checkpoint", "a/b"):
        (work / name).mkdir(parents=True)
    for name in ("models/tiny-arithmetic", "models/teacher", "runs/reward_model/checkpoint/reward"):
        (work / name).symlink_to(TINY)
    for path in (ROOT / "pipelines/data").iterdir():
        (work / "data" / path.name).symlink_to(path)
    row = json.dumps({"question": "1+1=", "meta": {"answer": "2"}, "prompt": "1+1=", "label": "2", "domain": "math"}) + "\n"
    (work / "data/maths/1.jsonl.gz").write_bytes(gzip.compress(row.encode()))
    (work / "data/code/1.jsonl").write_text(row)
    (work / "data/solved.jsonl").write_text(json.dumps({"prompt": "add two numbers",
                                                        "label": json.dumps({"tests": ["assert add(1, 2) == 3"]})}) + "\n")
    (work / "reward.py").write_text("def compute_score(response, label):\n    return float(response == label)\n")
    (work / "calculator_env.py").write_text("")
    return work


class Words:
    """The words of a mark of TOML."""

    def __init__(self, mark):
        self.each_line = mark.startswith("each line ")
        self.is_file = mark.startswith("file")
        self.table = self.after(mark, r"in \[([^]]+)\]")
        self.base = self.after(mark, r"over (\S+)") or BASE
        self.without = (self.after(mark, r"without (\S+)") or "").replace(",", " ").split()
        self.sets = re.findall(r"with (\S+=\S+)", mark)
        self.plugin = "with the plugin" in mark

    @staticmethod
    def after(mark, pattern):
        found = re.search(pattern, mark)
        return found[1] if found else None


class Toml(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="sluice-docs-")
        self.addCleanup(folder.cleanup)
        self.work = make_world(pathlib.Path(folder.name))

    def files(self, block):
        """The texts to validate for one block."""
        words = Words(block.mark)
        if (words.is_file or re.search(r"(?m)^extends\b", block.text) or
            all(f"[{t}" in block.text for t in ("pipeline]", "budget]", "nodes."))):
            return [block.text]
        removed = "".join(f"{name} = false\n" for name in words.without)
        base = self.work / (re.sub(r"\W", "_", block.place) + "_base.toml")
        base.write_text(f'extends = "{ROOT / words.base}"\n{removed}')
        texts = block.text.splitlines() if words.each_line else [block.text]
        return [f'extends = "{base}"\n' + (f"[{words.table}]\n" if words.table else "") + text + "\n" for text in texts]

    def validate(self, block):
        words = Words(block.mark)
        plugin = ["--plugin", self.plugin] if words.plugin else ["--plugins"]
        options = [*plugin, *(word for value in words.sets for word in ("--set", value))]
        said = ""
        for number, text in enumerate(self.files(block)):
            # Three folders deep, as an example is: `extends = "../../pipelines/ppo.toml"`.
            folder = self.work if "../../" not in text else self.work / "a"
            file = folder / (re.sub(r"\W", "_", block.place) + f"_{number}.toml")
            file.write_text(text)
            done = rlhf_run("validate", file, *options, cwd=self.work)
            if done.returncode != 0:
                said += f"{block.place}\n{done.stderr}\n"
        return said

    @functools.cached_property
    def plugin(self):
        return build_plugin([b for b in all_blocks() if b.page == "docs/writing-a-node.md"], "brevity", self.work / "build")

    def test_every_block_is_valid(self):
        blocks = [block for block in all_blocks() if block.language == "toml" and not block.is_left_out]
        self.assertGreater(len(blocks), 25)
        self.plugin  # built once, in front of the threads
        self.assertEqual("".join(side_by_side(self.validate, blocks)), "")


def pieces(blocks, kind):
    """The pieces of C++ of a page: name -> code, in which every line knows where it stands in the page."""
    found = {}
    for block in blocks:
        word, _, rest = block.mark.partition(" ")
        if block.language != "cpp" or word != kind:
            continue
        name, _, template = rest.partition("\n")
        code = f'#line {block.line} "{block.page}"\n{block.text}'
        lines = template.split("\n") if template else []
        at = lines.index("...") if "..." in lines else len(lines)
        text = "\n".join([*lines[:at], code, *lines[at + 1:], ""])
        found[name.strip()] = found.get(name.strip(), "") + text
    return found


def compile_code(code, *options):
    flags = ["-std=c++20", "-Wall", "-Wextra", f"-I{ROOT}"]
    done = subprocess.run([COMPILER, *flags, *options, "-x", "c++", "-"], input=code, capture_output=True, text=True, timeout=120)
    return "" if done.returncode == 0 else done.stderr


def build_plugin(blocks, name, folder):
    library = folder / f"lib{name}_scorer.so"
    said = compile_code(pieces(blocks, "plugin")[name], "-shared", "-fPIC", "-o", str(library))
    assert not said, said
    return library


def as_one_file(units):
    """Each piece in a namespace of its own, all includes in front."""
    includes, bodies = [], []
    for name, code in units.items():
        lines = code.split("\n")
        includes += [line for line in lines if line.startswith("#include")]
        body = "\n".join("" if line.startswith("#include") else line for line in lines)
        own = "namespace sluice" in body
        bodies.append(body if own else f"namespace unit_{name} {{\nusing namespace sluice;\n"
                      f"using namespace sluice::engine;\n{body}\n}}")
    return "\n".join([*dict.fromkeys(includes), *bodies])


class Cpp(unittest.TestCase):
    maxDiff = None

    def test_every_piece_compiles(self):
        for page in sorted({block.page for block in all_blocks() if block.language == "cpp"}):
            units = pieces([block for block in all_blocks() if block.page == page], "unit")
            with self.subTest(page):
                if units:
                    self.assertEqual(compile_code(as_one_file(units), "-fsyntax-only"), "")

    def test_what_is_shown_as_a_plugin_is_one(self):
        with tempfile.TemporaryDirectory() as folder:
            for page in sorted({block.page for block in all_blocks()}):
                blocks = [block for block in all_blocks() if block.page == page]
                for name in pieces(blocks, "plugin"):
                    library = build_plugin(blocks, name, pathlib.Path(folder))
                    done = rlhf_run("nodes", "--plugin", library)
                    self.assertEqual(done.returncode, 0, done.stderr)
                    self.assertIn(f"({library.name})", done.stdout)

    def test_what_has_no_mark_stands_in_the_file_that_is_named(self):
        for block in all_blocks():
            if block.language != "cpp" or block.is_left_out or block.mark.startswith(("unit ", "plugin ")):
                continue
            with self.subTest(block.place):
                said = block.mark.removeprefix("stands in ") or re.sub(r"<!--.*?-->", "", block.above, flags=re.DOTALL)
                file = re.findall(r"[\w/]+\.(?:cpp|h)\b", said)[-1]
                lines = iter([" ".join(line.split()) for line in (ROOT / file).read_text().splitlines()])
                missing = [line for line in block.text.splitlines() if line.strip() and " ".join(line.split()) not in lines]
                self.assertEqual(missing, [], f"not in {file}, or not in this order")


class OtherLanguages(unittest.TestCase):
    def test_python_is_python(self):
        for block in all_blocks():
            if block.language == "python":
                compile(block.text, block.place, "exec")

    def test_shell_is_shell(self):
        for block in all_blocks():
            if block.language in ("bash", "sh", "console"):
                done = subprocess.run(["bash", "-n"], input=block.text, capture_output=True, text=True)
                self.assertEqual((done.returncode, done.stderr), (0, ""), block.place)

    def test_cmake_is_that_of_the_example(self):
        for block in all_blocks():
            if block.language == "cmake":
                example = (ROOT / "examples/04_scorer_plugin/CMakeLists.txt").read_text().splitlines()
                self.assertEqual([line for line in block.text.splitlines() if line not in example], [], block.place)


@functools.cache
def help_of(words):
    return rlhf_run(*words, "--help")


def subcommands(words):
    done = help_of(words)
    return re.findall(r"(?m)^  (\w[\w-]*)  ", done.stdout.partition("ubcommands:")[2]) if done.returncode == 0 else []


def wrong_in(command):
    """What the program does not have of what `command` names; empty: nothing."""
    command = command.rpartition("| ")[2] if "| " in command else command
    words = re.findall(r"\S+", command.removeprefix("srun ").partition(" < ")[0])[1:]
    if words and words[0] == "--setup":
        return ""  # of the script that builds the program
    path = []
    while words and re.fullmatch(r"[a-z]+", words[0]) and words[0] in subcommands(tuple(path)):
        path.append(words.pop(0))
    is_file = words and (words[0].endswith(".toml") or "/" in words[0] or words[0].isupper())
    if not path and words and not words[0].startswith("-") and not is_file:
        return f"no subcommand {words[0]}"
    options = [word.strip("[],;.)").partition("=")[0] for word in words if word.lstrip("[").startswith("--")]
    known = "".join(help_of(tuple(of)).stdout for of in ([path] if path else [["run"], []])) if options else ""
    missing = [word.lstrip("[") for word in options if not re.search(rf"{re.escape(word.lstrip('['))}\b", known)]
    return f"no {', '.join(missing)} in rlhf-run {' '.join(path)}" if missing else ""


def sayings(output):
    """The lines of an output without places in a file, what stands there, and carets."""
    lines = [line for line in output.splitlines() if not re.match(r" +\d+ \| ", line)]
    return [re.sub(r"^\S+:\d+:\d+: |^ +\| +\^+ ", "", line).strip() for line in lines]


class Commands(unittest.TestCase):
    maxDiff = None

    def test_subcommands_and_options_are_there(self):
        shown = [found for page in PAGES for found in shown_commands(name_of(page), text_of(page))]
        shown += [(block.place, line.removeprefix("$ ").strip()) for block in all_blocks() for line in block.text.splitlines()
                  if re.match(r"(\$ )?(srun )?(\./)?rlhf-run ", line) and block.language in ("", "bash", "sh", "console")]
        self.assertGreater(len(shown), 60)
        wrong = [f"{place}: {command}: {found}" for place, command in shown if (found := wrong_in(without_comment(command)))]
        self.assertEqual(wrong, [])

    def test_a_command_gives_the_output_that_is_shown(self):
        compared = 0
        for block in all_blocks():
            if block.language not in ("", "console") or not block.text.startswith("$ ") or block.is_left_out:
                continue
            for part in re.split(r"(?m)^\$ ", block.text)[1:]:
                command, _, expected = part.partition("\n")
                with self.subTest(block.place):
                    self.assertEqual(self.output_of(command), expected)
                    compared += 1
        self.assertGreaterEqual(compared, 2)

    def test_what_is_shown_of_an_output_is_printed(self):
        shown = [block for block in all_blocks() if block.mark.startswith("printed by ")]
        self.assertGreater(len(shown), 2)
        for block in shown:
            with self.subTest(block.place):
                printed = self.output_of(" ".join(block.mark.removeprefix("printed by ").split()))
                self.assertEqual([said for said in sayings(block.text) if said not in printed], [], printed)

    def test_commands_that_need_no_file_run(self):
        for place, command in [found for page in PAGES for found in shown_commands(name_of(page), text_of(page))]:
            if command.startswith("echo ") and " try " in command and not re.search(r"\b[A-Z]{2,}\b|\.py", command):
                with self.subTest(place):
                    self.assertNotIn("error", self.output_of(command))

    def output_of(self, command):
        command = re.sub(r"(?<![\w/])(\./)?rlhf-run(?= )", shlex.quote(PROGRAM), command)
        return subprocess.run(["bash", "-c", command], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=120).stdout


class Claims(unittest.TestCase):
    def test_what_models_compute_in_is_what_dtype_takes(self):
        tables = json.loads(rlhf_run("nodes", "--format", "json").stdout)["tables"]
        model = next(table for table in tables if table["name"] == "model")
        dtype = next(parameter for parameter in model["parameters"] if parameter["name"] == "dtype")
        (sentence,) = re.findall(r"(?m)^Models compute in[^.]*\.", text_of(ROOT / "docs/pipeline-language.md"))
        self.assertEqual(set(re.findall(r"\b(?:b?float|int)\d+", sentence)), set(dtype["choices"]))


class Reference(unittest.TestCase):
    def test_the_reference_of_node_types_is_current(self):
        current = rlhf_run("nodes", "--format", "markdown")
        self.assertEqual(current.returncode, 0, current.stderr)
        self.assertEqual((ROOT / "docs/nodes.md").read_text(), current.stdout,
                         "docs/nodes.md is stale: rlhf-run nodes --format markdown > docs/nodes.md")


class Links(unittest.TestCase):
    """Where a link within the documentation leads, there is a file, and a heading of that name."""

    LINK = re.compile(r'\[[^\]]*\]\(([^)\s]+)\)|(?:src|srcset)="([^"]+)"')

    @staticmethod
    def without_code(text):
        """What is shown as code is no link and no heading."""
        return re.sub(r"`[^`\n]*`", lambda code: "`" * len(code[0]), re.sub(r"(?ms)^```.*?^```", "", text))

    @staticmethod
    @functools.cache
    def headings(page):
        """What GitHub calls them: letters, digits, blanks as hyphens; a second one of a name has -1 after it."""
        found = []
        for heading in re.findall(r"(?m)^#+ (.*)", re.sub(r"(?ms)^```.*?^```", "", text_of(page))):
            shown = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
            found.append(re.sub(r"[^\w\- ]", "", shown.lower()).replace(" ", "-"))
        return {name + (f"-{found[:place].count(name)}" if name in found[:place] else "") for place, name in enumerate(found)}

    def test_lead_somewhere(self):
        links = [(page, link or picture) for page in (*PAGES, ROOT / "CHANGELOG.md", ROOT / "docs/nodes.md")
                 for link, picture in self.LINK.findall(self.without_code(text_of(page)))]
        inside = [(page, link) for page, link in links if not re.match(r"https?:", link)]
        self.assertGreater(len(inside), 300)
        for page, link in inside:
            with self.subTest(page=name_of(page), link=link):
                path, _, heading = link.partition("#")
                target = (page.parent / path).resolve() if path else page
                self.assertTrue(target.exists())
                if heading:
                    self.assertIn(heading, self.headings(target))


class Prose(unittest.TestCase):
    LONGEST = 120

    def test_lines_are_short_enough_to_read(self):
        """All but tables and code, in which a line ends where it must."""
        for page in PAGES:
            fenced = False
            for number, line in enumerate(page.read_text().splitlines(), 1):
                fenced ^= line.strip().startswith("```")
                is_prose = not fenced and not line.startswith(("|", "    ", "```", "<!--", "!["))
                if is_prose and " " in line.strip():
                    self.assertLessEqual(len(line), self.LONGEST, f"{page.relative_to(ROOT)}:{number}")


class Architecture(unittest.TestCase):
    PAGES = [ROOT / "docs/architecture.md", *sorted((ROOT / "docs/architecture").glob("*.md"))]
    MODULES = [folder for folder in ROOT.iterdir() if folder.is_dir() and not folder.name.startswith(".") and
               folder.name != "build"]
    ELSEWHERE = {"share/sluice"}  # of an installation

    def is_there(self, path):
        """From the root or within a module, of which a paragraph often speaks; without .h and .cpp it is the part that both
        are."""
        names = [path] if pathlib.PurePath(path).suffix else [path, path + ".h", path + ".cpp"]
        return any(any(folder.glob(name)) for folder in (ROOT, *self.MODULES) for name in names)

    def test_every_path_that_it_names_is_there(self):
        prose = re.sub(r"(?ms)^```.*?^```", "", "\n".join(map(text_of, self.PAGES)))
        paths = {code for code in re.findall(r"`([^`]+)`", prose) if re.fullmatch(r"[\w.*-]+(/[\w.*-]+)*/?", code) and
                 "/" in code}
        self.assertGreater(len(paths), 100)
        self.assertEqual(sorted(path for path in paths - self.ELSEWHERE if not self.is_there(path)), [])


class Security(unittest.TestCase):
    def test_every_threat_names_tests_that_are_there(self):
        rows = [line.strip("| ").split(" | ") for line in
                (ROOT / "docs/security.md").read_text().partition("## Threats")[2].splitlines() if line.startswith("| ")][1:]
        self.assertGreater(len(rows), 20)
        for threat, _, tests in rows:
            named = re.findall(r"`([^`]+)`", tests)
            self.assertTrue(named, threat)
            file = None
            for name in named:
                with self.subTest(threat=threat, name=name):
                    if "/" in name:
                        file = ROOT / name
                        self.assertTrue(file.exists())
                    elif re.fullmatch(r"[a-z]+:\w+", name):
                        module, suite = name.split(":")
                        sources = "".join(path.read_text() for path in (ROOT / "tests" / module).rglob("*_test.cpp"))
                        self.assertRegex(sources, rf"TEST(_F|_P)?\({suite}\w*,")
                    elif name.startswith("path-outside"):
                        self.assertTrue((ROOT / f"tests/golden/problems/{name}.toml").exists())
                    else:
                        self.assertIn(name, file.read_text())


if __name__ == "__main__":
    unittest.main()
