"""Trackers: told what a run writes, and never in its way. The client is a package of this test, called wandb; the real ones are held
against metrics.jsonl by tests/oracles/trackers_reference.py."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
SMALL = {"pipeline.iterations": 3, "checkpoint.every_iterations": 1, "nodes.prompts.groups_per_iteration": 8, "nodes.held_out.groups_per_iteration": 8}
# Writes what it is told into a file; SPOILED says how it goes wrong.
CLIENT = """
    import json, os, signal, time
    SPOILED = {spoiled!r}

    def write(**told):
        with open(os.environ["TOLD"], "a") as file:
            file.write(json.dumps(told) + "\\n")

    class Settings:
        def __init__(self, **_): pass

    class Table:
        def __init__(self, columns, data): self.columns, self.data = columns, data

    class Run:
        id = "the-id"

        def log(self, values, step):
            if SPOILED == "raises" and step == 1: raise RuntimeError("no\\nnetwork")
            if SPOILED == "dies" and step == 1: os.kill(os.getpid(), signal.SIGKILL)
            if SPOILED == "hangs" and step == 1: time.sleep(600)
            if SPOILED == "prints": print("x" * 100000)
            for name, value in values.items():
                if isinstance(value, Table): write(step=step, table=name, columns=value.columns, rows=value.data)
            if not any(isinstance(value, Table) for value in values.values()): write(step=step, values=values)

        def finish(self):
            write(finished=True)

    def init(**about):
        if SPOILED == "refuses": raise ValueError("no key")
        about.pop("settings")
        write(about=about, pid=os.getpid())
        return Run()
"""


def repeatable(metrics):
    return [{key: value for key, value in row.items() if not key.startswith(("time/", "memory/", "engine/"))} for row in metrics]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "p.toml").write_text('extends = "builtin:grpo"\n[nodes.samples]\ntype = "write_jsonl"\ninputs = ["score"]\n')

    def client(self, spoiled=""):
        """Installs the client."""
        (self.folder / "clients").mkdir(exist_ok=True)
        (self.folder / "clients/wandb.py").write_text(textwrap.dedent(CLIENT.format(spoiled=spoiled)))

    def words(self, *words, **keys):
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        return [PROGRAM, *map(str, words), *sets]

    def environment(self):
        return {**os.environ, "SLUICE_PYTHON": sys.executable, "PYTHONPATH": str(self.folder / "clients"), "TOLD": str(self.folder / "told")}

    def program(self, *words, code=0, **keys):
        done = subprocess.run(self.words(*words, **keys), cwd=self.folder, capture_output=True, text=True, timeout=120, env=self.environment())
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def run_pipeline(self, name="run", trackers=("wandb",), **keys):
        return self.program("run", "p.toml", "--run-dir", name, **{**SMALL, "log.trackers": list(trackers), **keys})

    def metrics(self, name="run"):
        return [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]

    def told(self, kind):
        file = self.folder / "told"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if kind in line]

    def assert_run_is_as_without(self, name="run"):
        self.run_pipeline("without", trackers=())
        self.assertEqual(repeatable(self.metrics(name)), repeatable(self.metrics("without")))
        for file in ("samples.jsonl", "checkpoint/actor/model.safetensors"):
            self.assertEqual((self.folder / name / file).read_bytes(), (self.folder / "without" / file).read_bytes(), file)

    def assert_one_warning(self, done, *texts):
        lines = done.stderr.splitlines()
        self.assertEqual(len(lines), 1, done.stderr)
        self.assertTrue(lines[0].startswith("warning: "), done.stderr)
        for text in texts:
            self.assertIn(text, lines[0])


class WhatIsTold(Case):
    def test_the_numbers_of_the_run_folder(self):
        self.client()
        done = self.run_pipeline()
        self.assertEqual(done.stderr, "")
        expected = [{name: value for name, value in row.items() if name != "iteration" and value is not None} for row in self.metrics()]
        self.assertEqual([told["values"] for told in self.told("values")], expected)
        self.assertEqual([told["step"] for told in self.told("values")], [0, 1, 2])
        self.assertEqual(len(self.told("finished")), 1)
        self.assert_run_is_as_without()

    def test_the_first_samples_of_each_iteration(self):
        self.client()
        self.run_pipeline()
        rows = [json.loads(line) for line in (self.folder / "run/samples.jsonl").read_text().splitlines()]
        self.assertEqual([told["step"] for told in self.told("table")], [0, 1, 2])
        for told in self.told("table"):
            self.assertEqual(told["table"], "samples")
            self.assertEqual(told["columns"], ["iteration", "group", "sample", "prompt", "response", "score"])
            self.assertEqual(told["rows"], [list(row.values()) for row in rows if row["iteration"] == told["step"]][:8])

    def test_what_run_it_is(self):
        self.client()
        self.run_pipeline(**{"log.project": "sums"})
        about = self.told("about")[0]["about"]
        self.assertEqual((about["project"], about["name"], about["id"]), ("sums", "run", None))
        self.assertEqual(about["config"]["nodes.prompts.groups_per_iteration"], 8)

    def test_a_run_that_goes_on_tells_the_rest_under_the_same_id(self):
        self.client()
        self.run_pipeline()
        self.program("resume", "run", **{"pipeline.iterations": 5})
        self.assertEqual([told["step"] for told in self.told("values")], [0, 1, 2, 3, 4])
        self.assertEqual([told["about"]["id"] for told in self.told("about")], [None, "the-id"])

    def test_a_run_that_was_killed_tells_each_iteration_once(self):
        self.client()
        run = subprocess.Popen(self.words("run", "p.toml", "--run-dir", "run", **{**SMALL, "pipeline.iterations": 100000, "log.trackers": ["wandb"]}),
                               cwd=self.folder, env=self.environment(), stdout=subprocess.DEVNULL)
        while len(self.told("values")) < 2:
            time.sleep(0.02)
        run.kill()
        run.wait()
        pid = self.told("about")[0]["pid"]
        for _ in range(500):  # it dies with the run
            if not pathlib.Path(f"/proc/{pid}").exists():
                break
            time.sleep(0.02)
        self.assertFalse(pathlib.Path(f"/proc/{pid}").exists())
        done = len(self.metrics())
        self.program("resume", "run", **{"pipeline.iterations": done + 2})
        steps = [told["step"] for told in self.told("values")]
        self.assertEqual(sorted(set(steps)), list(range(done + 2)))

    def test_track_tells_it_later(self):
        self.client()
        self.run_pipeline(trackers=())
        self.assertEqual(self.told("values"), [])
        self.program("track", "run", "--to", "wandb")
        self.program("track", "run", "--to", "wandb")
        self.assertEqual([told["step"] for told in self.told("values")], [0, 1, 2])
        self.assertEqual(self.told("about")[0]["about"]["project"], "grpo")


class WhatGoesWrong(Case):
    def test_lines_that_are_damaged_are_left_out_and_the_first_is_told(self):
        self.client()
        self.run_pipeline(trackers=())
        metrics = self.folder / "run/metrics.jsonl"
        lines = metrics.read_text().splitlines(keepends=True)
        metrics.write_text(lines[0] + lines[1].replace("{", "[", 1) + "[1]\n" + lines[2])
        self.assert_one_warning(self.program("track", "run", "--to", "wandb", code=1), "metrics.jsonl, line 2 is damaged")
        self.assertEqual([told["step"] for told in self.told("values")], [0, 2])

    def test_a_client_that_is_not_installed(self):
        done = self.run_pipeline(trackers=("swanlab",))
        self.assert_one_warning(done, "swanlab is not told of this run", "No module named 'swanlab'", "-m pip install swanlab")
        self.assert_run_is_as_without()

    def test_a_client_that_refuses(self):
        self.client("refuses")
        self.assert_one_warning(self.run_pipeline(), "wandb is told no more of this run: ValueError: no key")
        self.assert_run_is_as_without()

    def test_a_client_that_raises_is_told_no_more_and_the_rest_later(self):
        self.client("raises")
        self.assert_one_warning(self.run_pipeline(), "wandb is told no more of this run: RuntimeError: no network")
        self.assert_run_is_as_without()
        self.client()
        self.program("track", "run", "--to", "wandb")
        self.assertEqual(sorted({told["step"] for told in self.told("values")}), [0, 1, 2])

    def test_a_client_that_kills_its_process(self):
        self.client("dies")
        self.assert_one_warning(self.run_pipeline(), "was killed by signal 9", "rlhf-run track")
        self.assert_run_is_as_without()

    def test_a_client_that_hangs_is_waited_for_so_long_as_is_said(self):
        self.client("hangs")
        self.assert_one_warning(self.run_pipeline(**{"log.tracker_seconds": 0.5}), "does not wait longer for wandb")
        self.assert_run_is_as_without()

    def test_a_client_that_prints_a_lot(self):
        self.client("prints")
        done = self.run_pipeline()
        self.assertEqual(done.stderr, "")
        self.assertNotIn("xxxx", done.stdout)
        self.assertEqual(len(self.told("values")), 3)

    def test_one_that_works_beside_one_that_does_not(self):
        self.client()
        self.assert_one_warning(self.run_pipeline(trackers=("swanlab", "wandb")), "swanlab is not told")
        self.assertEqual(len(self.told("values")), 3)

    def test_no_interpreter(self):
        environment = {**self.environment(), "SLUICE_PYTHON": "/nowhere/python"}
        done = subprocess.run(self.words("run", "p.toml", "--run-dir", "run", **{**SMALL, "log.trackers": ["wandb"]}), cwd=self.folder, capture_output=True,
                              text=True, timeout=120, env=environment)
        self.assertEqual(done.returncode, 0)
        self.assert_one_warning(done, "nobody tells wandb of this run", "/nowhere/python")

    def test_a_folder_whose_links_lead_out_is_not_written(self):
        self.client()
        self.run_pipeline(trackers=())
        (self.folder / "elsewhere").mkdir()
        (self.folder / "run/trackers").symlink_to(self.folder / "elsewhere")
        done = self.program("resume", "run", **{"pipeline.iterations": 4, "log.trackers": ["wandb"]})
        self.assert_one_warning(done, "trackers leads out of the run folder")
        self.assertEqual(list((self.folder / "elsewhere").iterdir()), [])
        (self.folder / "run/trackers").unlink()
        (self.folder / "run/secret.jsonl").symlink_to(self.folder / "p.toml")
        self.assertIn("secret.jsonl leads out of the run folder", self.program("track", "run", "--to", "wandb", code=1).stderr)
        self.assertEqual(self.told("values"), [])

    def test_an_unknown_tracker_is_refused_with_all_that_there_are(self):
        done = self.run_pipeline_refused(["wandbb"])
        for text in ("did you mean \"wandb\"?", "tensorboard", "mlflow", "trackio", "swanlab"):
            self.assertIn(text, done.stderr)
        self.assertFalse((self.folder / "run").exists())

    def run_pipeline_refused(self, trackers):
        return self.program("run", "p.toml", "--run-dir", "run", code=78, **{"log.trackers": trackers})

    def test_each_tracker_of_the_contract_has_its_module(self):
        text = (ROOT / "engine/contract/settings.cpp").read_text()
        names = text[text.index("known_trackers"):].split("{", 2)[2].split("}")[0]
        modules = {path.stem.removeprefix("to_") for path in (ROOT / "python/sluice/trackers").glob("to_*.py")}
        self.assertEqual({name.strip().strip('"') for name in names.split(",")}, modules)


if __name__ == "__main__":
    unittest.main()
