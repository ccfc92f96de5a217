"""Does the program do with files that pyarrow wrote what it does with the same JSON lines: validate, init, run, resume?

    python columnar_runs.py PROGRAM
"""

import json
import os
import pathlib
import sys
import unittest

import pyarrow as pa
import pyarrow.parquet

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
os.environ["SLUICE_PROGRAM"] = str(pathlib.Path(sys.argv.pop(1)).resolve())
sys.path.insert(0, str(ROOT / "tests/cli"))
from support import DONE, PPO, Case, run, sets  # noqa: E402

LINES = ROOT / "pipelines/data/arithmetic_train.jsonl"


class ColumnarRuns(Case):
    def setUp(self):
        super().setUp()
        self.rows = [json.loads(line) for line in LINES.read_text().splitlines()]
        table = pa.Table.from_pylist(self.rows)
        pa.parquet.write_table(table, self.folder / "rows.parquet", row_group_size=100)
        with pa.OSFile(str(self.folder / "rows.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=100)

    def run_and_resume(self, data):
        """Two iterations, and two more that go on from them: what repeats of the metrics, and the models."""
        name = f"run of {data.name}"
        self.run_ppo(name, **{"nodes.prompts.path": str(data), "checkpoint.every_iterations": 2})
        done = run("resume", self.folder / name, *sets(**{"pipeline.iterations": 4}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return self.lines_of(name), self.models_of(name)

    def test_a_run_and_its_resume_are_those_of_the_lines(self):
        expected = self.run_and_resume(LINES)
        self.assertEqual(len(expected[0]), 4)
        for name in ("rows.parquet", "rows.arrow"):
            self.assertEqual(self.run_and_resume(self.folder / name), expected)

    def test_validate_says_what_is_wrong_with_file_and_row(self):
        fields = {"nodes.prompts.path": str(self.folder / "rows.parquet"), "nodes.prompts.label_field": "lable"}
        done = run("validate", PPO, *sets(**fields))
        self.assert_refused(done, 'rows.parquet:1:1: error: no field "lable"', "fields here: ", 'label_field = "label"?')

    def test_validate_looks_at_all_rows_where_it_is_told_to(self):
        self.rows[-1]["label"] = None
        pa.parquet.write_table(pa.Table.from_pylist(self.rows), self.folder / "rows.parquet")
        fields = sets(**{"nodes.prompts.path": str(self.folder / "rows.parquet")})
        self.assertEqual(run("validate", PPO, *fields).returncode, DONE)
        self.assert_refused(run("validate", PPO, "--data", *fields),
                            f'rows.parquet:{len(self.rows)}:1: error: field "label" must be', "it is null")

    def test_init_finds_the_fields_that_it_finds_in_lines(self):
        made = []
        for name in (LINES, self.folder / "rows.parquet", self.folder / "rows.arrow"):
            done = run("init", "grpo", "--model", ROOT / "pipelines/models/tiny-text", "--data", name)
            self.assertEqual(done.returncode, DONE, done.stderr)
            made.append((done.stdout.replace(str(name), "DATA"), done.stderr.replace(str(name), "DATA")))
        self.assertEqual(made[1:], made[:1] * 2)


if __name__ == "__main__":
    unittest.main()
