"""Tables of keys in docs/pipeline-language.md and docs/algorithms/: each key, its bounds, choices and default are those of the
contracts."""

import functools
import json
import os
import pathlib
import re
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/quick_start"))
from quick_start import run_program  # noqa: E402

PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
LANGUAGE = ROOT / "docs/pipeline-language.md"

# Which table of the program a table of the page is: the words of the page right above it, or a row of it that begins others.
TABLES = {"`[pipeline]`": "pipeline", "`[budget]`": "budget", "`[schedule]`": "schedule", "`[runtime]`": "runtime",
          "`[checkpoint]`": "checkpoint", "`[log]`": "log", "`[cluster]`": "cluster", "`[cluster.roles.NAME]`": "role",
          "`[models.NAME]`": "model", "Keys of `optimizer`:": "optimizer", "Groups of weights": "optimizer.groups",
          "Adapters: `lora`": "lora", "Moving averages: `ema`": "ema", "Scheduled numbers": "scheduled",
          "Paths: several sources": "source", "Devices: `device` and `on`": "device"}


def rlhf_run(*words):
    done = run_program([PROGRAM, *words], cwd=ROOT)
    assert done.returncode == 0, done.stderr
    return done.stdout


def with_children(name, parameters):
    yield name, {parameter["name"]: parameter for parameter in parameters}
    for parameter in parameters:
        if parameter["kind"] == "tables":
            yield f"{name}.{parameter['name']}", {child["name"]: child for child in parameter["parameters"]}


@functools.cache
def contracts():
    """{name of a table, node type or component: {key: parameter}}"""
    reference = json.loads(rlhf_run("nodes", "--format", "json"))
    named = [(table["name"], table["parameters"]) for table in reference["tables"]]
    named += [(of["type"], of["parameters"]) for of in reference["nodes"] + reference["components"]]
    return dict(pair for name, parameters in named for pair in with_children(name, parameters))


def cells_of(line):
    return [cell.strip().replace("\\|", "|") for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]


def tables_of(page):
    """(heading and last line above it, cells of the head, rows) of each table of a page."""
    heading, line_above, found, table = "", "", [], None
    for line in re.sub(r"(?ms)^```.*?^```", "", page.read_text()).splitlines():
        if not line.startswith("|"):
            table = None
            heading = line.lstrip("# ") if line.startswith("#") else heading
            line_above = line or line_above
        elif table is None:
            table = []
            found.append(((line_above, heading), cells_of(line), table))
        elif not re.fullmatch(r"[|\- ]+", line):
            table.append(cells_of(line))
    return found


def code(cell):
    return re.findall(r"`([^`]*)`", cell)


def is_same(shown, ours):
    try:
        return float(shown) == float(ours)
    except ValueError:
        return shown == ours


class Language(unittest.TestCase):
    """docs/pipeline-language.md has all keys of the tables."""

    @staticmethod
    @functools.cache
    def rows():
        """[(table of the program, key, cell of its type, cell of its default)]"""
        found = []
        for above, head, rows in tables_of(LANGUAGE):
            if head[:3] != ["key", "type", "default"]:
                continue
            name = next((TABLES[words] for words in above if words in TABLES), None)
            for key, kind, default, *_ in rows:
                begins = re.match(r"\*\*(`.*?`|top level)\*\*", key)
                if begins:
                    name = TABLES.get(begins[1])
                elif name:
                    found.append((name, code(key)[0], kind, default))
        return found

    def test_has_every_key_and_no_other(self):
        for name in TABLES.values():
            with self.subTest(name):
                self.assertEqual(sorted(key for of, key, *_ in self.rows() if of == name), sorted(contracts()[name]))

    def test_defaults_are_those_of_the_contracts(self):
        for name, key, _, shown in self.rows():
            parameter = contracts()[name][key]
            with self.subTest(table=name, key=key):
                if parameter["required"]:
                    self.assertIn("required", shown)
                elif parameter["default"] not in (None, '""'):
                    value = re.match(r"`([^`]*)`|(-?\d[\d.e-]*)", shown)
                    self.assertTrue(value and is_same(value[1] or value[2], parameter["default"]),
                                    f"{shown}, and not {parameter['default']}")

    def test_bounds_and_choices_are_those_of_the_contracts(self):
        for name, key, kind, _ in self.rows():
            parameter = contracts()[name][key]
            with self.subTest(table=name, key=key):
                if "choices" in parameter:
                    self.assertEqual(sorted(re.findall(r'"([^"]*)"', kind)), sorted(parameter["choices"]))
                for bound in re.findall(r"\b(?:from|to|above) (-?[\d.]+)", kind):
                    self.assertIn(float(bound), (parameter.get("minimum"), parameter.get("maximum")))
                if "minimum" in parameter:
                    self.assertRegex(kind, r"\b(from|above) ")


class Algorithms(unittest.TestCase):
    """Each page names the types that it is about; the tables have defaults of these."""

    # Words for a default that is an empty list, or none. Of what "must be written" the default is one that is refused.
    WORDS = {"unset": None, "all alike": "[]", "all 1": "[]", "required": None, "": None, "`-rejection_max`": None}

    def candidates(self, text, key):
        return [parameters[key] for name, parameters in contracts().items() if key in parameters and
                re.search(rf'[`"]{re.escape(name)}[`"]', text)]

    def shown_defaults(self, keys, cell):
        """One for each key, or one for all."""
        parts = [part.strip() for part in cell.split(",")] if cell not in self.WORDS and not cell.startswith("`[") else [cell]
        parts = parts * len(keys) if len(parts) == 1 else parts
        return [self.WORDS[part] if part in self.WORDS else part.strip("`") for part in parts]

    def test_defaults_are_those_of_a_type_that_the_page_names(self):
        compared = 0
        for page in sorted((ROOT / "docs/algorithms").glob("*.md")):
            for _, head, rows in tables_of(page):
                if head[0] != "parameter" or "default" not in head:
                    continue
                for row in rows:
                    if row[head.index("default")] == "must be written":
                        continue
                    keys = [key for key in code(row[0]) if self.candidates(page.read_text(), key)]
                    shown = self.shown_defaults(keys, row[head.index("default")])
                    for key, default in zip(keys, shown, strict=True):
                        ours = [parameter["default"] for parameter in self.candidates(page.read_text(), key)]
                        with self.subTest(page=page.name, key=key):
                            self.assertTrue(any(default == of or (default is not None and of is not None and is_same(default, of))
                                                for of in ours), f"{default}, and not {ours}")
                            compared += 1
        self.assertGreater(compared, 70)


if __name__ == "__main__":
    unittest.main()
