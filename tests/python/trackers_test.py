"""Trackers: told what a run writes, and never in its way. The clients are packages of this test, called wandb and swanlab; the
real ones are held against metrics.jsonl by tests/oracles/trackers_reference.py."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
SMALL = {"pipeline.iterations": 3, "checkpoint.every_iterations": 1, "nodes.prompts.groups_per_iteration": 8,
         "nodes.held_out.groups_per_iteration": 8}
# Writes what it is told into a file; SPOILED says how it goes wrong.
CLIENT = """
    import json, os, signal, sys, time
    SPOILED = {spoiled!r}

    def write(**told):
        with open(os.environ["TOLD"], "a") as file:
            file.write(json.dumps(dict(client=__name__, **told)) + "\\n")

    class Settings:
        def __init__(self, **_): pass

    class Table:
        def __init__(self, columns, data):
            for column in zip(*data):
                kinds = {{isinstance(cell, str) for cell in column if cell is not None}}
                if len(kinds) > 1: raise TypeError("incompatible types")
            self.columns, self.data = columns, data

    class Text:
        def __init__(self, text): self.text = text

    class Run:
        id = "the-id"

        def log(self, values, step):
            if SPOILED == "raises" and step == 1: raise RuntimeError("no\\nnetwork")
            if SPOILED == "dies" and step == 1: os.kill(os.getpid(), signal.SIGKILL)
            if SPOILED == "crashes" and step == 1: os.kill(os.getpid(), signal.SIGSEGV)
            if SPOILED == "exits 0" and step == 1: sys.exit(0)
            if SPOILED == "exits 1" and step == 1: sys.exit(1)
            if SPOILED == "exits at once" and step == 1: os._exit(0)
            if SPOILED == "hangs" and step == 1: write(hangs=True), time.sleep(600)
            while SPOILED == "is slow" and step == 1 and not os.path.exists(os.environ["TOLD"] + "-enough"): time.sleep(0.01)
            if SPOILED == "prints": print("x" * 100000)
            for name, value in values.items():
                if isinstance(value, Table): write(step=step, table=name, columns=value.columns, rows=value.data)
            if all(isinstance(value, float) for value in values.values()): write(step=step, values=values)

        def finish(self):
            write(finished=True)

    def init(**about):
        if SPOILED == "refuses": raise ValueError("no key")
        about.pop("settings", None)
        write(about=about, pid=os.getpid())
        print("a line of the client", file=sys.stderr)
        return Run()
"""


def repeatable(metrics):
    return [{key: value for key, value in row.items() if not key.startswith(("time/", "memory/", "engine/"))} for row in metrics]


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        (self.folder / "p.toml").write_text('extends = "builtin:grpo"\n[nodes.samples]\n'
                                            'type = "write_jsonl"\ninputs = ["score"]\n')

    def client(self, spoiled="", name="wandb"):
        """Installs the client."""
        (self.folder / "clients").mkdir(exist_ok=True)
        (self.folder / f"clients/{name}.py").write_text(textwrap.dedent(CLIENT.format(spoiled=spoiled)))

    def words(self, *words, **keys):
        sets = [word for key, value in keys.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        return [PROGRAM, *map(str, words), *sets]

    def environment(self):
        return {**os.environ, "SLUICE_PYTHON": sys.executable, "PYTHONPATH": str(self.folder / "clients"),
                "TOLD": str(self.folder / "told")}

    def program(self, *words, code=0, **keys):
        done = subprocess.run(self.words(*words, **keys), cwd=self.folder, capture_output=True, text=True, timeout=300,
                              env=self.environment())
        self.assertEqual(done.returncode, code, done.stderr)
        return done

    def run_pipeline(self, name="run", trackers=("wandb",), **keys):
        return self.program("run", "p.toml", "--run-dir", name, **{**SMALL, "log.trackers": list(trackers), **keys})

    def metrics(self, name="run"):
        return [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]

    def told(self, kind, client="wandb"):
        file = self.folder / "told"
        lines = [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []
        return [line for line in lines if kind in line and line["client"] == client]

    def steps(self, client="wandb"):
        return [told["step"] for told in self.told("values", client)]

    def start(self, *words, **keys):
        """A program that the test does not wait for."""
        with (self.folder / "out").open("w") as out, (self.folder / "errors").open("w") as errors:
            process = subprocess.Popen(self.words(*words, **keys), cwd=self.folder, env=self.environment(), stdout=out,
                                       stderr=errors)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def out(self):
        return (self.folder / "out").read_text()

    def wait_for(self, happened, what):
        for _ in range(3000):
            if happened():
                return
            time.sleep(0.02)
        self.fail(f"waited for {what}")

    def kill(self, process):
        """And sees what it started die with it."""
        process.kill()
        process.wait()
        self.see_the_client_die()

    def see_the_client_die(self):
        pid = self.told("about")[-1]["pid"]
        self.wait_for(lambda: not pathlib.Path(f"/proc/{pid}").exists(), "the process of the client to die")

    def assert_run_is_as_without(self, name="run"):
        self.run_pipeline("without", trackers=())
        self.assertEqual(repeatable(self.metrics(name)), repeatable(self.metrics("without")))
        for file in ("samples.jsonl", "checkpoint/actor/model.safetensors"):
            self.assertEqual((self.folder / name / file).read_bytes(), (self.folder / "without" / file).read_bytes(), file)

    def forget(self):
        """Nobody was told anything."""
        shutil.rmtree(self.folder / "run/trackers", ignore_errors=True)
        (self.folder / "told").unlink(missing_ok=True)

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
        expected = [{name: value for name, value in row.items() if name != "iteration" and value is not None}
                    for row in self.metrics()]
        self.assertEqual([told["values"] for told in self.told("values")], expected)
        self.assertEqual(self.steps(), [0, 1, 2])
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

    def test_a_sample_without_a_score_has_none_in_the_table(self):
        self.client()
        self.run_pipeline(trackers=())
        samples = self.folder / "run/samples.jsonl"
        rows = [json.loads(line) for line in samples.read_text().splitlines()]
        rows[1]["score"] = "nan"  # as a float that is not finite is written
        samples.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.assertEqual(self.program("track", "run", "--to", "wandb").stderr, "")
        self.assertEqual([row[-1] for row in self.told("table")[0]["rows"]][:3], [rows[0]["score"], None, rows[2]["score"]])
        self.assertEqual(self.steps(), [0, 1, 2])

    def test_what_run_it_is(self):
        self.client()
        self.run_pipeline(**{"log.project": "sums"})
        about = self.told("about")[0]["about"]
        self.assertEqual((about["project"], about["name"], about["id"]), ("sums", "run", None))
        self.assertEqual(about["config"]["nodes.prompts.groups_per_iteration"], 8)

    def test_no_password_of_a_url(self):
        self.client()
        self.run_pipeline(trackers=())
        with (self.folder / "run/pipeline.toml").open("a") as pipeline:
            pipeline.write('[nodes.judge]\nurls = ["http://me:se@cret@one:80/a@b?c@d", "https://two/x"]\nwords = "ask '
                           'http://me@one, ftp://:secret@two and a@b"\nservers = [{ url = "HTTP://me:secret@one" }]\n')
        self.program("track", "run", "--to", "wandb", "--project", "p")
        config = self.told("about")[0]["about"]["config"]
        self.assertEqual(config["nodes.judge.urls"], ["http://***@one:80/a@b?c@d", "https://two/x"])
        self.assertEqual(config["nodes.judge.words"], "ask http://***@one, ftp://***@two and a@b")
        self.assertEqual(config["nodes.judge.servers"], [{"url": "HTTP://***@one"}])

    def test_a_run_that_goes_on_tells_the_rest_under_the_same_id(self):
        self.client()
        self.run_pipeline()
        self.program("resume", "run", **{"pipeline.iterations": 5})
        self.assertEqual(self.steps(), [0, 1, 2, 3, 4])
        self.assertEqual([told["about"]["id"] for told in self.told("about")], [None, "the-id"])

    def test_a_run_that_was_killed_tells_each_iteration_once(self):
        self.client()
        run = self.start("run", "p.toml", "--run-dir", "run",
                         **{**SMALL, "pipeline.iterations": 100000, "log.trackers": ["wandb"]})
        self.wait_for(lambda: len(self.steps()) >= 2, "two iterations to be told")
        self.kill(run)
        done = len(self.metrics())
        self.program("resume", "run", **{"pipeline.iterations": done + 2})
        steps = self.steps()
        self.assertEqual(sorted(set(steps)), list(range(done + 2)))
        self.assertLessEqual(len(steps), done + 3)  # the one on whose way it was killed

    def test_track_that_was_killed_tells_each_iteration_once(self):
        self.client("hangs")
        self.run_pipeline(trackers=())
        track = self.start("track", "run", "--to", "wandb")
        self.wait_for(lambda: self.told("hangs"), "the client to hang")
        self.kill(track)
        self.client()
        self.program("track", "run", "--to", "wandb")
        self.assertEqual(self.steps(), [0, 1, 2])

    def test_a_client_that_fails_is_told_each_iteration_once(self):
        self.run_pipeline(trackers=())
        for spoiled in ("raises", "dies", "exits at once"):
            with self.subTest(spoiled):
                self.forget()
                self.client(spoiled)
                self.program("track", "run", "--to", "wandb", code=1)
                self.client()
                self.program("track", "run", "--to", "wandb")
                self.assertEqual(self.steps(), [0, 1, 2])

    def test_two_at_once_tell_each_iteration_once(self):
        self.client("hangs")
        self.run_pipeline(trackers=())
        self.start("track", "run", "--to", "wandb")
        self.wait_for(lambda: self.told("hangs"), "the client to hang")
        done = self.program("track", "run", "--to", "wandb", code=1)
        self.assert_one_warning(done, "wandb is not told of this run: another process tells it", "wait until that has ended")
        self.assertEqual(len(self.told("about")), 1)
        self.client(name="swanlab")
        self.program("track", "run", "--to", "swanlab")
        self.assertEqual(self.steps("swanlab"), [0, 1, 2])

    def test_track_tells_it_later(self):
        self.client()
        self.run_pipeline(trackers=())
        self.assertEqual(self.told("values"), [])
        self.program("track", "run", "--to", "wandb")
        self.program("track", "run", "--to", "wandb")
        self.assertEqual(self.steps(), [0, 1, 2])
        self.assertEqual(self.told("about")[0]["about"]["project"], "grpo")


class WhatGoesWrong(Case):
    def test_lines_that_are_damaged_are_left_out_and_the_first_is_told(self):
        self.client()
        self.run_pipeline(trackers=())
        metrics = self.folder / "run/metrics.jsonl"
        lines = metrics.read_text().splitlines(keepends=True)
        for damaged in (lines[1].replace("{", "[", 1), "[" * 100_000 + "]" * 100_000 + "\n"):
            self.forget()
            metrics.write_text(lines[0] + damaged + "[1]\n" + lines[2])
            self.assert_one_warning(self.program("track", "run", "--to", "wandb", code=1), "metrics.jsonl, line 2 is damaged")
            self.assertEqual(self.steps(), [0, 2])

    def test_what_is_no_number_or_beyond_all_floats_is_no_metric(self):
        self.client()
        self.run_pipeline(trackers=())
        metrics = self.folder / "run/metrics.jsonl"
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        rows[1].update({"a": "text", "b": [1], "c": 10 ** 400})
        metrics.write_text("".join(json.dumps(row) + "\n" for row in rows))
        self.assertEqual(self.program("track", "run", "--to", "wandb").stderr, "")
        self.assertEqual(self.steps(), [0, 1, 2])

    def test_files_of_someone_else_are_left_out(self):
        self.client()
        self.run_pipeline(trackers=())
        for name, line in (("a", '{"iteration": "first"}'), ("b", '{"iteration": null}'), ("c", "[1]")):
            (self.folder / f"run/{name}.jsonl").write_text(line + "\n")
        (self.folder / "run/d.jsonl").mkdir()
        os.mkfifo(self.folder / "run/e.jsonl")
        self.assertEqual(self.program("track", "run", "--to", "wandb").stderr, "")
        self.assertEqual(self.steps(), [0, 1, 2])

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
        self.assertEqual(self.steps(), [0, 1, 2])

    def test_a_client_that_ends_its_process_is_one_warning_and_the_others_are_told(self):
        self.run_pipeline(trackers=())
        self.client(name="swanlab")
        for spoiled, happened in (("exits 0", "its client called sys.exit(0)"), ("exits 1", "its client called sys.exit(1)"),
                                  ("exits at once", "the process that tells it exited with code 0"),
                                  ("crashes", "the process that tells it was killed by signal 11 (Segmentation fault)")):
            with self.subTest(spoiled):
                self.forget()
                self.client(spoiled)
                done = self.program("track", "run", "--to", "wandb", "--to", "swanlab", code=1)
                self.assert_one_warning(done, f"wandb is told no more of this run: {happened}; the rest is told with: "
                                        "rlhf-run track run --to wandb")
                self.assertEqual(self.steps("swanlab"), [0, 1, 2])

    def test_a_damaged_note_of_one_tracker_is_named_and_the_others_are_told(self):
        self.client()
        self.client(name="swanlab")
        self.run_pipeline(trackers=())
        note = self.folder / "run/trackers/wandb.json"
        for damaged in (b"", b"\xff", b"[1]", b'{"iterations_told": "2"}', b'{"run": 3}'):
            with self.subTest(damaged):
                self.forget()
                note.parent.mkdir()
                note.write_bytes(damaged)
                done = self.program("track", "run", "--to", "wandb", "--to", "swanlab", code=1)
                self.assert_one_warning(done, "wandb is not told of this run: run/trackers/wandb.json is damaged; move it away")
                self.assertEqual((self.steps(), self.steps("swanlab")), ([], [0, 1, 2]))
                note.unlink()
                self.program("track", "run", "--to", "wandb")
                self.assertEqual(self.steps(), [0, 1, 2])

    def test_a_client_that_kills_its_process(self):
        self.client("dies")
        self.assert_one_warning(self.run_pipeline(), "was killed by signal 9", "rlhf-run track")
        self.assert_run_is_as_without()

    def test_a_client_that_hangs_is_waited_for_so_long_as_is_said(self):
        self.client("hangs")
        self.assert_one_warning(self.run_pipeline(**{"log.tracker_seconds": 0.5}), "does not wait longer for wandb")
        self.assert_run_is_as_without()

    def test_a_client_that_hangs_is_told_of_once_while_the_run_and_the_others_go_on(self):
        self.client("hangs")
        self.client(name="swanlab")
        run = self.start("run", "p.toml", "--run-dir", "run",
                         **{**SMALL, "pipeline.iterations": 100000, "log.trackers": ["wandb", "swanlab"],
                            "log.tracker_seconds": 2})
        errors = self.folder / "errors"
        self.wait_for(lambda: "warning: wandb has not answered for 5 s; the run goes on" in errors.read_text(), "a word of it")
        told = len(self.steps("swanlab"))
        self.assertGreater(told, 2)
        self.wait_for(lambda: len(self.steps("swanlab")) > told + 2, "swanlab to be told more")
        self.assertEqual(self.steps(), [0])
        run.terminate()
        run.wait()
        self.assertIn("\nwaiting for wandb, swanlab, at most 2.0 s; Ctrl-C ends that\n", self.out())  # SIGTERM did not
        self.assertIn("does not wait longer for wandb; the rest is told with: rlhf-run track run --to wandb\n",
                      errors.read_text())
        self.assertEqual(errors.read_text().count("has not answered"), 1)

    def test_the_end_names_every_tracker_that_was_not_told_all(self):
        self.client("hangs")
        self.client("hangs", name="swanlab")
        done = self.run_pipeline(trackers=("wandb", "swanlab"), **{"log.tracker_seconds": 0.5})
        self.assert_one_warning(done, "does not wait longer for wandb, swanlab; the rest is told with: rlhf-run track run "
                                "--to wandb --to swanlab")

    def test_a_signal_ends_what_the_end_waits_for(self):
        self.client("hangs")
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number.name):
                run = self.start("run", "p.toml", "--run-dir", number.name,
                                 **{**SMALL, "log.trackers": ["wandb"], "log.tracker_seconds": 60})
                self.wait_for(lambda: "\nwaiting for wandb, at most 60 s; Ctrl-C ends that\n" in self.out(), "a word of it")
                run.send_signal(number)
                self.assertEqual(run.wait(timeout=30), 0)
                self.assertEqual((self.folder / "errors").read_text(),
                                 "warning: the end of the run does not wait longer for wandb; the rest is told with: "
                                 f"rlhf-run track {number.name} --to wandb\n")

    def test_track_says_now_and_again_who_has_not_answered_and_keeps_what_was_told(self):
        self.client("hangs")
        self.run_pipeline(trackers=(), **{"log.tracker_seconds": 0.5})
        track = self.start("track", "run", "--to", "wandb")
        errors = self.folder / "errors"
        self.wait_for(lambda: "for 10 s" in errors.read_text(), "a second word of it")
        rest = "its client decides how long it tries. Ctrl-C ends that: what it was told is kept\n"
        self.assertEqual(errors.read_text(), "".join(f"wandb has not answered for {seconds} s; {rest}" for seconds in (5, 10)))
        track.send_signal(signal.SIGINT)
        self.assertEqual(track.wait(timeout=30), -signal.SIGINT)
        self.see_the_client_die()
        self.client()
        self.program("track", "run", "--to", "wandb")
        self.assertEqual(self.steps(), [0, 1, 2])

    def test_track_that_has_waited_and_told_all_has_done_well(self):
        self.client("is slow")
        self.run_pipeline(trackers=(), **{"log.tracker_seconds": 0.5})
        track = self.start("track", "run", "--to", "wandb")
        self.wait_for(lambda: "wandb has not answered for 5 s" in (self.folder / "errors").read_text(), "a word of it")
        (self.folder / "told-enough").touch()
        self.assertEqual(track.wait(timeout=60), 0)
        self.assertEqual(self.steps(), [0, 1, 2])

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
        done = subprocess.run(self.words("run", "p.toml", "--run-dir", "run", **{**SMALL, "log.trackers": ["wandb"]}),
                              cwd=self.folder, capture_output=True, text=True, timeout=300, env=environment)
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
