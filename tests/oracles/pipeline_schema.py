"""taplo reads pipelines by the schema that `rlhf-run schema` writes: what editors mark is what `validate` refuses.

    python pipeline_schema.py PROGRAM      needs the package taplo beside that Python
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path += [str(ROOT / "tests/cli"), str(ROOT / "tests/quick_start")]
from pipeline_mutants import MUTANTS, mutant  # noqa: E402
from quick_start import run_program  # noqa: E402
PROGRAM = pathlib.Path(sys.argv[1]).resolve()
TAPLO = pathlib.Path(sys.executable).parent / "taplo"
SCHEMA = ROOT / "docs/pipeline.schema.json"
FOUND = re.compile(r"^error: (.*)\n\s*┌─ .*:(\d+):\d+$", re.MULTILINE)
OF_THE_WHOLE_TABLE = re.compile(r"is a required property$|^Additional properties")

# What each parameter is given in turn: whether it takes that, the schema and `validate` must agree on. But for 3.0, which is an
# integer to a schema.
VALUES = ['"word"', '""', "true", "-1000000000", "0.5", "3", "[]", '["word", 3]', '["word"]', "[0.5, -1e9]", "{}", "{ word = 3 }"]
ABOUT_ONE_VALUE = {"wrong-type", "out-of-range", "unknown-choice", "empty-text", "unknown-component", "written-twice",
                   "unknown-key"}


class PipelineSchema(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        temporary = tempfile.TemporaryDirectory(prefix="sluice-")
        cls.addClassCleanup(temporary.cleanup)
        cls.folder = pathlib.Path(temporary.name)
        for name in ("docs", "pipelines"):
            (cls.folder / name).mkdir()
        shutil.copyfile(SCHEMA, cls.folder / "docs" / SCHEMA.name)

    def lint(self, *files, schema=None):
        """[(message, line)] of what taplo finds in the files."""
        words = ["--schema", schema.as_uri()] if schema else []
        done = subprocess.run([str(TAPLO), "lint", "--colors", "never", *words, *map(str, files)], capture_output=True, text=True,
                              cwd=self.folder, env=os.environ | {"RUST_LOG": "error"}, timeout=120)
        self.assertIn(done.returncode, (0, 1), done.stderr)
        found = [(message, int(line)) for message, line in FOUND.findall(done.stderr)]
        self.assertEqual(bool(found), done.returncode != 0, done.stderr)
        return found

    def problems(self, file):
        done = run_program([PROGRAM, "validate", file, "--format", "json"], cwd=ROOT)
        return json.loads(done.stdout)["problems"]

    def test_our_pipelines_have_no_problem_by_the_schema_that_they_name(self):
        files = sorted([*ROOT.glob("pipelines/**/*.toml"), *ROOT.glob("examples/*/*.toml")])
        self.assertGreater(len(files), 25)
        for file in files:
            directive = re.match(r"#:schema (\S+)\n", file.read_text())
            self.assertTrue(directive and (file.parent / directive[1]).resolve() == SCHEMA, file)
        self.assertEqual(self.lint(*files), [])
        self.assertEqual(self.lint(*ROOT.glob("tests/pipelines/*.toml"), schema=SCHEMA), [])

    def test_a_pipeline_with_every_key_written_out_has_no_problem(self):
        files = []
        for file in sorted(ROOT.glob("pipelines/*.toml")):
            done = run_program([PROGRAM, "plan", file, "--config"], cwd=ROOT)
            self.assertEqual(done.returncode, 0, done.stderr)
            files.append(self.folder / file.name)
            files[-1].write_text(done.stdout)
        self.assertEqual(self.lint(*files, schema=SCHEMA), [])

    def test_what_is_wrong_is_found_and_refused(self):
        self.assertGreaterEqual(len(MUTANTS), 30)
        for link in ("data", "models"):
            (self.folder / "pipelines" / link).symlink_to(ROOT / "pipelines" / link)
        for file in ROOT.glob("pipelines/*.toml"):
            shutil.copyfile(file, self.folder / "pipelines" / file.name)
        for what, name, there, instead, message in MUTANTS:
            with self.subTest(what):
                file = self.folder / "pipelines" / "mutant.toml"
                file.write_text(mutant(name, there, instead))
                self.assertTrue(any(message in found for found, _ in self.lint(file)), self.lint(file))
                self.assertTrue(self.problems(file))

    def compare(self, lines_of_values, text):
        """The schema refuses the values in the lines that `validate` refuses."""
        file = self.folder / "values.toml"
        file.write_text(text)
        marked = {line for message, line in self.lint(file, schema=SCHEMA)
                  if not OF_THE_WHOLE_TABLE.search(message)} & lines_of_values.keys()
        refused = {problem["line"]
                   for problem in self.problems(file) if problem["kind"] in ABOUT_ONE_VALUE} & lines_of_values.keys()
        self.assertEqual(sorted(lines_of_values[line] for line in marked ^ refused), [])
        return len(refused)

    def test_each_parameter_takes_what_validate_takes(self):
        types = json.loads(run_program([PROGRAM, "nodes", "--format", "json"], cwd=ROOT).stdout)
        head = '[pipeline]\niterations = 1\n[budget]\ntokens_in_flight = 8\nmicro_batch_tokens = 8\n'
        lines, named = head.splitlines(), {}

        def node(kind, key, value):
            lines.extend([f"[nodes.n{len(lines)}]", f'type = "{kind}"', f"{key} = {value}"])
            named[len(lines)] = f"{kind}: {key} = {value}"

        for kind in types["nodes"]:
            for parameter in kind["parameters"]:
                for value in VALUES:
                    # tables with keys of their own
                    if parameter["kind"] not in ("component", "scheduled") or value not in ("{}", "{ word = 3 }"):
                        node(kind["type"], parameter["name"], value)
        self.assertGreater(self.compare(named, "\n".join(lines) + "\n"), 1000)

    def test_each_key_of_a_table_takes_what_validate_takes(self):
        tables = json.loads(run_program([PROGRAM, "nodes", "--format", "json"], cwd=ROOT).stdout)["tables"]
        for value in VALUES:
            lines, named = ["[pipeline]"], {}
            for table in tables:
                if table["name"] == "scheduled":  # stands in the tables of nodes, under keys that take it
                    continue
                if table["heading"] != "pipeline":  # whose header is there
                    lines.append(f"[{table['heading']}]")
                if "SOURCE" in table["heading"]:
                    lines.append('type = "jsonl_prompts"')
                for parameter in table["parameters"]:
                    if parameter["kind"] != "table":
                        lines.append(f"{parameter['name']} = {value}")
                        named[len(lines)] = f"[{table['heading']}] {parameter['name']} = {value}"
            self.compare(named, "\n".join(lines) + "\n")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1])
