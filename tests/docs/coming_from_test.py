"""docs/coming-from.md: what it says of other systems' keys is in the lists of coming_from/, what it says of ours is in the
contracts."""

import ast
import functools
import json
import os
import pathlib
import re
import sys
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "tests/quick_start")]
from docs_page import blocks_of  # noqa: E402
from quick_start import run_program  # noqa: E402

PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
PAGE = ROOT / "docs/coming-from.md"
LISTS = [tomllib.loads(path.read_text()) for path in sorted((ROOT / "tests/docs/coming_from").glob("*.toml"))]
# what tables of the contracts are called in the page
NESTED = {"optimizer": "model.optimizer", "lora": "model.lora", "ema": "model.ema"}


def rlhf_run(*words):
    done = run_program([PROGRAM, *words], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def add_parameters(found, of, parameters):
    for parameter in parameters:
        name, missing = f"{of}.{parameter['name']}", "required" if parameter["required"] else "unset"
        found[name] = missing if parameter["default"] is None else parameter["default"]
        add_parameters(found, name, parameter.get("parameters", []))


@functools.cache
def our_defaults():
    """{"gae.lambda": "0.95"}; "required" or "unset" where there is none. A type by itself has None."""
    contracts = json.loads(rlhf_run("nodes", "--format", "json"))
    found = {"plugins": "unset"}
    tables = [(node["type"], node) for node in contracts["nodes"]]
    tables += [(f"{component['kind']}:{component['type']}", component) for component in contracts["components"]]
    for name, contract in tables:
        found[name] = None
    tables += [(NESTED.get(table["name"], table["name"]), table) for table in contracts["tables"]]
    for name, contract in tables:
        add_parameters(found, name, contract["parameters"])
    return found


@functools.cache
def preset_values(preset):
    return dict(re.findall(r"(?m)^    ([\w:.]+) = (.*?)  +\S", rlhf_run("describe", f"preset:{preset}"))) if preset else {}


def code(cell):
    """What stands in backticks."""
    return re.findall(r"`([^`]*)`", cell)


def same(a, b):
    try:
        return float(a) == float(b)
    except ValueError:
        return a == b


def once(values):
    """All of them, or the one that they all are."""
    return values[:1] if len(set(values)) == 1 else values


class Row:
    def __init__(self, line):
        theirs, their_default, ours, our_default, self.note = (cell.strip() for cell in line.strip().strip("|").split("|"))
        self.theirs, self.their_default = code(theirs), code(their_default)
        self.ours, self.our_default = code(ours), our_default


def sections(system):
    """{heading: rows} of what the page says of a system."""
    (text,) = re.findall(rf"(?ms)^## From {system}\n(.*?)(?=^## |\Z)", PAGE.read_text())
    found = {}
    for part in re.split(r"(?m)^### ", text)[1:]:
        heading, _, body = part.partition("\n")
        found[heading] = [Row(line) for line in body.splitlines() if line.startswith("| ")][1:]
    return found


class ComingFrom(unittest.TestCase):
    maxDiff = None

    def each_row(self):
        """(list, section of the list, row, what a failure is of)."""
        return [(system, system["sections"].get(heading, {"covered": {}}), row, f"{system['system']}, {heading}: {row.theirs}")
                for system in LISTS for heading, rows in sections(system["system"]).items() for row in rows]

    def test_there_is_a_list_for_every_part(self):
        self.assertEqual(sorted(re.findall(r"(?m)^## From (.*)", PAGE.read_text())), sorted(system["system"] for system in LISTS))
        for system in LISTS:
            self.assertEqual(list(sections(system["system"])), list(system["sections"]))

    def test_their_keys_are_those_of_the_list_each_once(self):
        for system in LISTS:
            for heading, rows in sections(system["system"]).items():
                with self.subTest(system["system"], section=heading):
                    covered = system["sections"].get(heading, {"covered": {}})["covered"]
                    self.assertEqual(sorted(key for row in rows for key in row.theirs), sorted(covered))

    def test_their_defaults_are_those_of_the_list(self):
        for _, listed, row, where in self.each_row():
            self.assertEqual(row.their_default, once([listed["covered"].get(key) for key in row.theirs]), where)

    def test_our_keys_are_in_the_contracts(self):
        for _, _, row, where in self.each_row():
            self.assertEqual([key for key in row.ours if key not in our_defaults()], [], where)
            if not row.ours:
                self.assertTrue(row.note, f"{where}: it is not said why there is no such key")

    def test_our_defaults_are_those_of_the_contracts_and_of_the_preset(self):
        for system, _, row, where in self.each_row():
            given, expected = preset_values(system["preset"]), []
            for key in row.ours:
                default = our_defaults().get(key)
                changed = key in given and not same(given[key], default)
                expected += [f"`{default}`" + (f", preset `{given[key]}`" if changed else "")] if default is not None else []
            self.assertEqual(row.our_default, ", ".join(once(expected)), where)

    def test_keys_that_a_note_sets_are_in_the_contracts(self):
        names = {key.rpartition(".")[2] for key in our_defaults()} | {"type"}
        for _, _, row, where in self.each_row():
            written = re.findall(r"\b(\w+) = ", " ".join(code(row.note)))
            self.assertEqual([name for name in written if name not in names], [], where)

    def test_the_table_of_places_names_keys_that_are_there(self):
        (table,) = re.findall(r"(?ms)^\| written here as [^\n]*\n[^\n]*\n(.*?)\n\n", PAGE.read_text())
        written = [key for line in table.splitlines() for key in code(line.split("|")[1])]
        self.assertGreater(len(written), 8)
        self.assertEqual([key for key in written if key not in our_defaults()], [])

    def test_the_page_says_what_was_read(self):
        for system in LISTS:
            row = f"| {system['repository']} | {system['commit']} | {system['of']} |"
            self.assertIn(row, PAGE.read_text())
            self.assertRegex(PAGE.read_text(), rf"(?m)^\| {system['system']} \| {re.escape(system['version'])}\b")


def keys_in_python(text):
    calls = [node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    return [argument.arg for call in calls for argument in call.keywords]


def keys_in_yaml(text):
    """Of mappings, and of mappings in a list below a key."""
    found, above = [], ""
    for line in text.splitlines():
        indent, key = re.match(r"( *(?:- )?)(\w+):", line).groups()
        above = key if not indent else above
        found.append(f"{above}.{key}" if indent else key)
    return found


KEYS_OF = {"python": keys_in_python, "yaml": keys_in_yaml,
           "bash": lambda text: re.findall(r"(?<=\s)--[\w.]+|(?<=\s)[\w.]+(?==)", text)}


def keys_of(listed):
    return [listed["prefix"] + key for key in [*listed["covered"], *listed.get("left_out", [])]]


def inherited(system):
    """Parts of other lists that a system has as well."""
    return [other["sections"][part] for other in LISTS for part in system.get("inherits", {}).get(other["system"], [])]


class Examples(unittest.TestCase):
    def test_theirs_set_keys_of_the_list(self):
        blocks = [block for block in blocks_of("docs/coming-from.md", PAGE.read_text()) if block.language in KEYS_OF]
        self.assertEqual(len(blocks), len(LISTS))
        for block in blocks:
            system = next(system for system in LISTS if system["system"] == re.findall(r"(?m)^## From (.*)", block.above)[-1])
            known = {key for listed in [*system["sections"].values(), *inherited(system)] for key in keys_of(listed)}
            written = KEYS_OF[block.language](block.text)
            with self.subTest(system["system"]):
                self.assertGreater(len(written), 10)
                self.assertEqual([key for key in written if key not in known], [])


if __name__ == "__main__":
    unittest.main()
