"""Blocks of code in a page of the documentation, and the comments that say how tests/docs_test.py takes them."""

import dataclasses
import re

FENCE = re.compile(r"^```(\w*)\s*$")
MARK = re.compile(r"<!-- test: ((?:(?!-->).)*)-->\s*\Z", re.DOTALL)
COMMAND = re.compile(r"^ {4}(\$ )?((?:\./)?rlhf-run .*|echo .*\| *(?:\\\n.*)?(?:\./)?rlhf-run .*)", re.MULTILINE)


@dataclasses.dataclass
class Block:
    page: str      # relative to the repository
    line: int      # of its first line of code
    language: str  # "" where the fence names none
    text: str
    mark: str      # of the comment right above it; "" where there is none
    above: str     # all of the page above it

    @property
    def place(self):
        return f"{self.page}:{self.line}"

    @property
    def is_left_out(self):
        return self.mark.startswith("not run: ")


def blocks_of(page, text):
    found, lines, begin = [], text.split("\n"), None
    for number, line in enumerate(lines):
        fence = FENCE.match(line)
        if not fence:
            continue
        if begin is None:
            begin, language = number + 1, fence[1]
            continue
        above = "\n".join(lines[:begin - 1])
        mark = MARK.search(above)
        found.append(Block(page, begin + 1, language, "\n".join(lines[begin:number]) + "\n", mark[1].strip() if mark else "",
                           above))
        begin = None
    assert begin is None, f"{page}: a block is not closed"
    return found


def without_comment(command):
    """Of a line that shows a command: the part before two blanks, a comment after it, or what is meant as an explanation."""
    before, pipe, last = command.strip().rpartition("| ")
    return before + pipe + re.split(r"\s{2,}|\s+#\s", last, maxsplit=1)[0]


def shown_commands(page, text):
    """Commands of indented lines and of `code in a line`: (place, command)."""
    fenced = [line for block in blocks_of(page, text) for line in range(block.line, block.line + block.text.count("\n"))]
    found = []
    for match in COMMAND.finditer(text):
        line = text.count("\n", 0, match.start()) + 1
        if line not in fenced:
            found.append((f"{page}:{line}", without_comment(match[2].replace("\\\n", " "))))
    for match in re.finditer(r"(?<!`)`((?:\./)?rlhf-run [^`\n]*)`", text):
        found.append((f"{page}:{text.count(chr(10), 0, match.start()) + 1}", match[1]))
    return found
