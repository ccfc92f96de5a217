"""The pipelines that come with the program: `rlhf-run pipelines`, `extends = "builtin:NAME"`, `rlhf-run run builtin:NAME`."""

import json
import os
import pathlib
import shutil
import subprocess
import unittest

from support import DONE, MODEL, PROGRAM, ROOT, Case, run

PIPELINES = ROOT / "pipelines"
SMALL = {"pipeline.iterations": "2", "checkpoint.every_iterations": "0", "nodes.prompts.groups_per_iteration": "8",
         "nodes.held_out.groups_per_iteration": "8"}
SETS = [word for key, value in SMALL.items() for word in ("--set", f"{key}={value}")]


class Builtin(Case):
    def in_folder(self, *words):
        """The program with a folder as the current one that knows nothing of the checkout."""
        return run(*words, cwd=self.folder)

    def metrics_of(self, *words):
        done = self.in_folder("run", *words, "--run-dir", "run", *SETS)
        self.assertEqual(done.returncode, DONE, done.stderr)
        rows = [json.loads(line) for line in (self.folder / "run/metrics.jsonl").read_text().splitlines()]
        shutil.rmtree(self.folder / "run")
        return [row["reward/score_mean"] for row in rows]

    def test_all_are_listed_with_what_they_are(self):
        done = self.in_folder("pipelines")
        self.assertEqual(done.returncode, DONE, done.stderr)
        lines = done.stdout.splitlines()
        self.assertEqual([line.split()[0] for line in lines[1:-1]], sorted(path.stem for path in PIPELINES.glob("*.toml")))
        self.assertIn("  grpo                       Group relative policy optimisation (Shao et al. 2024) on sums of two numbers",
                      lines)
        for line in lines:
            self.assertLessEqual(len(line), 160)
            self.assertNotIn("#:schema", line)
        self.assertEqual(lines[-1], f"in {PIPELINES}")

    def test_a_layer_over_one_is_a_layer_over_its_file(self):
        self.write("by_name.toml", 'extends = "builtin:grpo"\n')
        self.write("by_path.toml", f'extends = "{PIPELINES}/grpo.toml"\n')
        self.assertEqual(self.metrics_of("by_name.toml"), self.metrics_of("by_path.toml"))

    def test_one_runs_without_a_file(self):
        self.assertEqual(self.metrics_of("builtin:grpo"), self.metrics_of(f"{PIPELINES}/grpo.toml"))

    def test_run_may_be_left_out(self):
        done = self.in_folder("builtin:grpo", "--run-dir", "run", *SETS)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_one_is_launched_on_ranks(self):
        done = self.in_folder("launch", "--ranks", "2", "builtin:grpo", "--run-dir", "run", *SETS)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_models_and_data_are_overridden_as_always(self):
        shutil.copytree(MODEL, self.folder / "mine")
        shutil.copy(PIPELINES / "data/arithmetic_heldout.jsonl", self.folder / "mine.jsonl")
        self.write("p.toml",
                   'extends = "builtin:grpo"\n[models.actor]\ncheckpoint = "mine"\n[nodes.prompts]\npath = "mine.jsonl"\n')
        config = self.in_folder("plan", "p.toml", "--config").stdout
        self.assertRegex(config, rf'checkpoint = "{self.folder}/mine" +# p.toml:3')
        self.assertRegex(config, rf'path = "{self.folder}/mine.jsonl" +# p.toml:5')
        self.assertEqual(len(self.metrics_of("p.toml")), 2)

    def test_a_program_without_pipelines_says_where_they_should_lie(self):
        (self.folder / "bin").mkdir()
        (self.folder / "lib").mkdir()
        build = pathlib.Path(PROGRAM).resolve().parent.parent
        shutil.copy(PROGRAM, self.folder / "bin/rlhf-run")
        done = subprocess.run([self.folder / "bin/rlhf-run", "pipelines"], capture_output=True, text=True, timeout=60,
                              env={**os.environ, "LD_LIBRARY_PATH": str(build)})
        self.assert_refused(done, "no pipelines come with this program", "cmake --install")


if __name__ == "__main__":
    unittest.main()
