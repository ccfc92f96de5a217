"""The Python package `sluice`: runs, plans, the text of errors, rewards that are Python functions, samples.

Of this checkout, or with SLUICE_INSTALLED=1 of the environment of the interpreter, as a wheel brings it.
"""

import contextlib
import importlib.util
import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import unittest.mock
from multiprocessing.connection import Client

ROOT = pathlib.Path(__file__).resolve().parents[2]
if os.environ.get("SLUICE_INSTALLED") != "1":
    sys.path.insert(0, str(ROOT / "python"))
sys.path.append(str(ROOT / "tests/quick_start"))
import sluice  # noqa: E402
from quick_start import run_program  # noqa: E402
from sluice._rewards import RewardServer  # noqa: E402
from sluice.errors import error_of  # noqa: E402

SMALL = {"pipeline.iterations": 3, "checkpoint.every_iterations": 1, "nodes.prompts.groups_per_iteration": 8,
         "nodes.held_out": False, "nodes.held_out_answers": False, "nodes.held_out_score": False}
LONG = {**SMALL, "pipeline.iterations": 100000}
CTRL_C = {**LONG, "checkpoint.every_iterations": 100000}
WITH_SAMPLES = {"extends": "builtin:grpo", "nodes": {"samples": {"type": "write_jsonl", "inputs": ["score"],
                                                                 "fields": ["prompt", "response", "score", "tokens"]}}}


def command_line(*words):
    """What the program says by itself."""
    return run_program([sluice.program(), *words], cwd=pathlib.Path.cwd())


def killed(run):
    """What waiting for a run raises that SIGKILL has ended."""
    run._process.kill()
    try:
        run.wait()
    except sluice.RunError as error:
        return error


def length(response):
    return float(len(response))


class Case(unittest.TestCase):
    def setUp(self):
        self.before = pathlib.Path.cwd()
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        os.chdir(self.folder)
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)
        self.addCleanup(os.chdir, self.before)

    def program(self, script):
        """A program that does this in place of rlhf-run, meanwhile."""
        path = self.folder / "program"
        path.write_text(f"#!/bin/sh\nPATH=/usr/bin:/bin\n{script}\n", encoding="utf-8")  # a test may run where none is set
        path.chmod(0o755)
        return unittest.mock.patch.dict(os.environ, SLUICE_PROGRAM=str(path))


class Runs(Case):
    def test_metrics_come_while_it_goes_on_and_are_those_of_the_file(self):
        rows = []
        with sluice.run("builtin:grpo", LONG, run_dir="run") as run:
            for row in run:
                rows.append(row)
                if len(rows) == 3:
                    self.assertTrue(run.running)
                    break
        self.assertFalse(run.running)
        self.assertEqual([row["iteration"] for row in rows], [0, 1, 2])
        lines = (self.folder / "run/metrics.jsonl").read_text().splitlines()
        self.assertEqual(rows, [json.loads(line) for line in lines[:3]])
        self.assertEqual(run.metrics(), [json.loads(line) for line in lines])

    def test_a_run_ends_with_its_summary_and_its_models(self):
        run = sluice.run("builtin:grpo", SMALL).wait()
        self.assertEqual(len(run.metrics()), 3)
        self.assertIn("grpo finished: 3 iterations", run.output)
        self.assertTrue((run.checkpoint / "actor/config.json").exists())
        self.assertEqual(run.folder.parent.name, "runs")

    def test_a_run_that_was_stopped_goes_on(self):
        with sluice.run("builtin:grpo", LONG, run_dir="run") as run:
            next(iter(run))
        run.wait()  # it was asked to end, and has
        done = len(run.metrics())
        going_on = sluice.resume("run", {"pipeline.iterations": done + 2})
        self.assertEqual([row["iteration"] for row in going_on], list(range(done + 2)))
        self.assertEqual(len(sluice.Run("run").metrics()), done + 2)

    def test_one_that_may_go_on_has_the_folder_that_the_command_line_would_take(self):
        (self.folder / "mine.toml").write_text('extends = "builtin:grpo"\n[pipeline]\nname = "yours"\n')
        for pipeline, more, name in (("builtin:grpo", {}, "grpo"),
                                     ("mine.toml", {}, "yours"), ("mine.toml", {"pipeline.name": "ours"}, "ours"),
                                     ({"extends": "builtin:grpo"}, {"pipeline.name": None}, "pipeline")):
            first = sluice.run(pipeline, {**SMALL, **more}, resume=True).wait()
            again = sluice.run(pipeline, {**SMALL, **more}, resume=True).wait()
            self.assertEqual((first.folder, again.folder), (pathlib.Path("runs", name).absolute(),) * 2)
            self.assertIn(f"{name} is complete: 3 iterations", again.output)
        with self.assertRaisesRegex(sluice.PipelineError, "did you mean max_new_tokens?"):
            sluice.run("builtin:grpo", {"nodes.generate.max_new_token": 64}, resume=True)

    def test_a_new_folder_is_called_after_the_name_that_an_override_gives(self):
        run = sluice.run({"extends": "builtin:grpo", "pipeline": {"name": "mine"}}, {**SMALL, "pipeline.name": "ours"}).wait()
        self.assertTrue(run.folder.name.startswith("ours-"), run.folder)

    def test_ctrl_c_ends_it_with_a_checkpoint(self):
        (self.folder / "script.py").write_text(f"import sluice\nwith sluice.run('builtin:grpo', {CTRL_C}, run_dir='run') as "
                                               "run:\n    for row in run: print(row, flush=True)\n")
        path = os.pathsep.join(map(str, [pathlib.Path(sluice.__file__).parents[1], os.environ.get("PYTHONPATH", "")]))
        script = subprocess.Popen([sys.executable, "script.py"], env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE,
                                  stderr=subprocess.DEVNULL, start_new_session=True)
        with script:
            script.stdout.readline()
            os.killpg(script.pid, signal.SIGINT)  # to all that work in the foreground, as a terminal does
            script.stdout.read()
        self.assertEqual(script.returncode, -signal.SIGINT)
        self.assertTrue((sluice.Run("run").checkpoint / "actor/model.safetensors").exists())

    def test_names_may_begin_as_options_do(self):
        sluice.run("builtin:grpo", SMALL, run_dir="-x").wait()
        self.assertEqual(len(sluice.resume("-x", {"pipeline.iterations": 4}).wait().metrics()), 4)
        for call in (sluice.plan, sluice.validate, sluice.run):
            with self.assertRaisesRegex(sluice.PipelineError, "cannot read .*--help"):
                call("--help")

    def test_who_goes_to_another_folder_still_finds_its_run(self):
        run = sluice.run("builtin:grpo", SMALL).wait()
        os.mkdir("elsewhere")
        os.chdir("elsewhere")
        self.assertEqual(len(run.metrics()), 3)

    def test_an_empty_text_is_no_run_folder(self):
        for call in (lambda: sluice.run("builtin:grpo", SMALL, run_dir=""), lambda: sluice.resume("")):
            with self.assertRaisesRegex(sluice.PipelineError, "an empty text names no file and no folder"):
                call()
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_a_dictionary_is_a_pipeline_and_leaves_no_file(self):
        run = sluice.run({"extends": "builtin:grpo", "pipeline": {"name": "mine"}}, SMALL).wait()
        self.assertTrue(run.folder.name.startswith("mine-"))
        self.assertEqual([path.name for path in self.folder.iterdir()], ["runs"])

    def test_a_dictionary_that_is_wrong_is_not_called_by_the_name_of_a_file(self):
        wrong = {"extends": "builtin:grpo", "nodes": {"generate": {"max_new_token": 4}}}
        for call in (sluice.plan, sluice.validate, sluice.run):
            with (self.subTest(call.__name__),
                  self.assertRaisesRegex(sluice.PipelineError, r"\A<pipeline>:4:1: error: max_new_token ") as caught):
                call(wrong)
            self.assertEqual([problem["file"] for problem in caught.exception.problems],
                             ["<pipeline>"] if call is sluice.validate else [])

    def test_several_ranks_give_what_one_gives(self):
        shape = {**SMALL, "cluster.slots": 2}
        one = sluice.run("builtin:grpo", shape, run_dir="one").wait().metrics()
        two = sluice.run("builtin:grpo", shape, run_dir="two", ranks=2).wait().metrics()
        self.assertEqual([row["reward/score_mean"] for row in one], [row["reward/score_mean"] for row in two])

    def test_a_run_that_was_killed_says_by_which_signal_and_what_it_said(self):
        error = killed(sluice.run("builtin:grpo", {**LONG, "runtime.cores": 4096}))
        self.assertRegex(str(error), r"\Arlhf-run was killed by signal SIGKILL; it said before:\n(?s:.*)warning: .*cores = 4096")
        self.assertEqual(error.code, -signal.SIGKILL)


class Shown(Case):
    TALKS = ("mkdir run; touch run/pipeline.toml run/status.json; i=0; while [ $i -lt 3000 ]; do echo score — $i, and "
             "more; i=$((i + 1)); done")

    def shown_on(self, stream):
        with self.program(self.TALKS), contextlib.redirect_stdout(stream):
            return sluice.run("p.toml", run_dir="run", show=True).wait().output

    def test_what_the_program_prints_is_printed(self):
        stream = io.StringIO()
        self.assertEqual(self.shown_on(stream), stream.getvalue())
        self.assertIn("score — 2999, and more\n", stream.getvalue())

    def test_characters_that_an_output_has_not_are_escaped_there(self):
        stream = io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)
        self.assertIn("score — 2999, and more\n", self.shown_on(stream))
        self.assertIn(b"score \\u2014 2999, and more\n", stream.buffer.getvalue())

    def test_an_output_that_is_gone_does_not_end_the_run(self):
        stream = io.StringIO()
        stream.close()
        self.assertIn("score — 2999, and more\n", self.shown_on(stream))


class Folders(Case):
    def test_one_that_is_no_run_folder_is_an_error(self):
        (self.folder / "empty").mkdir()
        for name in ("nope", "empty"):
            for look in (sluice.Run(name).metrics, sluice.Run(name).samples, lambda name=name: list(sluice.Run(name))):
                with self.assertRaisesRegex(FileNotFoundError, f"/{name} is not the folder of a run: it has neither "
                                            "metrics.jsonl nor pipeline.toml"):
                    look()

    def test_one_of_a_run_that_has_just_begun_is_empty(self):
        (self.folder / "pipeline.toml").touch()
        run = sluice.Run(self.folder)
        self.assertEqual((run.metrics(), list(run), run.samples(), run.samples("mine.jsonl")), ([], [], {}, {}))

    def test_who_follows_a_run_reads_each_line_once(self):
        (self.folder / "metrics.jsonl").write_text("".join(f'{{"iteration": {i}}}\n' for i in range(3)))
        run = sluice.Run(self.folder)
        run._process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(1)"], text=True)  # stands for the program
        with unittest.mock.patch("json.loads", wraps=json.loads) as loads:
            self.assertEqual([row["iteration"] for row in run], [0, 1, 2])
        self.assertEqual(loads.call_count, 3)


class Samples(Case):
    def test_columns_hold_what_the_file_holds(self):
        run = sluice.run(WITH_SAMPLES, SMALL, run_dir="run").wait()
        rows = [json.loads(line) for line in (self.folder / "run/samples.jsonl").read_text().splitlines()]
        samples = run.samples()
        self.assertEqual(list(samples), ["iteration", "group", "sample", "prompt", "response", "score", "tokens"])
        for name, column in samples.items():
            self.assertEqual([getattr(value, "tolist", lambda value=value: value)() for value in column],
                             [row[name] for row in rows])
        if importlib.util.find_spec("numpy"):
            import numpy
            self.assertEqual((samples["score"].dtype.kind, samples["iteration"].dtype.kind), ("f", "i"))
            self.assertIsInstance(samples["tokens"][0], numpy.ndarray)
            self.assertAlmostEqual(samples["score"][samples["iteration"] == 2].mean(), run.metrics()[2]["reward/score_mean"],
                                   places=6)

    def test_a_text_may_hold_what_unicode_ends_lines_with(self):
        for end in ("\u2028", "\u2029", "\x85", "\x0b", "\x0c", "\x1c"):
            rows = [{"prompt": f"1+1={end}2", "sample": sample} for sample in range(2)]
            samples = self.samples_of(*(json.dumps(row, ensure_ascii=False) for row in rows))
            self.assertEqual(list(samples["prompt"]), [row["prompt"] for row in rows], ascii(end))

    def test_a_text_that_says_nan_stays_one(self):
        texts = ("nan", "inf", "-inf")
        samples = self.samples_of(*(json.dumps({"prompt": text, "label": text, "mine": text, "score": 1.0}) for text in texts))
        for name in ("prompt", "label", "mine"):
            self.assertEqual(list(samples[name]), list(texts), name)

    def test_numbers_that_are_not_finite_are_numbers(self):
        rows = [{"score": "nan", "margin": 0.5, "steps": ["nan", "nan"]},
                {"score": "nan", "margin": "-inf", "steps": ["nan", 0.5]}]
        samples = self.samples_of(*map(json.dumps, rows))
        self.assertEqual([str(float(value)) for value in samples["score"]], ["nan", "nan"])
        self.assertEqual(list(samples["margin"]), [0.5, float("-inf")])
        self.assertEqual([str(float(value)) for steps in samples["steps"] for value in steps], ["nan", "nan", "nan", "0.5"])

    def test_a_list_of_texts_stays_one(self):
        samples = self.samples_of(json.dumps({"tools": ["nan", "search"]}), json.dumps({"tools": ["inf"]}))
        self.assertEqual([list(value) for value in samples["tools"]], [["nan", "search"], ["inf"]])

    def samples_of(self, *lines):
        """What is read of a run folder with these lines in samples.jsonl."""
        (self.folder / "pipeline.toml").touch()
        (self.folder / "samples.jsonl").write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return sluice.Run(self.folder).samples()

    def test_a_run_without_them_has_none(self):
        self.assertEqual(sluice.run("builtin:grpo", SMALL).wait().samples(), {})

    def test_a_file_that_is_named_but_not_there_is_an_error(self):
        run = sluice.run("builtin:grpo", SMALL, run_dir="run").wait()
        for look in (run, sluice.Run("run")):
            with self.assertRaisesRegex(FileNotFoundError, "/run has no nope.jsonl"):
                look.samples("nope.jsonl")


class Rewards(Case):
    def test_a_function_of_this_process_scores(self):
        threads = set()

        def reward(response, label):  # what a file could not have
            threads.add(threading.current_thread().name)
            return {"score": float(response.strip() == label), "length": len(response)}

        with_function = sluice.run("builtin:grpo", SMALL, rewards={"score": reward}).wait().metrics()
        exact = sluice.run("builtin:grpo", SMALL).wait().metrics()
        self.assertEqual([row["reward/score_mean"] for row in with_function], [row["reward/score_mean"] for row in exact])
        self.assertGreater(with_function[0]["reward/score/length"], 1)
        self.assertTrue(threads)

    def test_functions_of_other_systems_are_called_as_they_are(self):
        def of_trl(prompts, completions, label, **columns):
            return [float(completion.strip() == right) for completion, right in zip(completions, label)]

        async def of_verl(data_source, solution_str, ground_truth, extra_info=None):
            return float(solution_str.strip() == ground_truth)

        exact = sluice.run("builtin:grpo", SMALL).wait().metrics()
        for function in (of_trl, of_verl):
            rows = sluice.run("builtin:grpo", SMALL, rewards={"score": function}).wait().metrics()
            self.assertEqual([row["reward/score_mean"] for row in rows], [row["reward/score_mean"] for row in exact],
                             function.__name__)

    def test_what_it_raises_is_what_the_run_says(self):
        def reward(response):
            raise KeyError("unit")

        run = sluice.run("builtin:grpo", SMALL, rewards={"score": reward})
        with self.assertRaises(sluice.RunError):
            run.wait()
        with self.assertRaises(sluice.RunError) as raised:
            run.wait()  # says it again
        for words in ("node 'score'", "iteration 0", "KeyError: 'unit'", "package_test.py:"):
            self.assertIn(words, str(raised.exception))
        self.assertEqual(raised.exception.code, 1)
        self.assertIsInstance(raised.exception.__cause__, KeyError)

    def test_one_that_wants_to_end_the_program_is_an_error_as_any_other(self):
        def leaves(response):
            sys.exit(3)

        def is_interrupted(response):
            raise KeyboardInterrupt

        for reward, kind, words in ((leaves, SystemExit, "SystemExit: 3 (package_test.py:"),
                                    (is_interrupted, KeyboardInterrupt, "KeyboardInterrupt")):
            with self.assertRaises(sluice.RunError) as raised:
                sluice.run("builtin:grpo", SMALL, rewards={"score": reward}).wait()
            self.assertIn(words, str(raised.exception))
            self.assertIsInstance(raised.exception.__cause__, kind)

    def test_a_folder_for_temporary_files_may_have_a_path_that_is_too_long_for_a_socket(self):
        long = os.path.join(os.getcwd(), "d" * 100)
        os.mkdir(long)
        with unittest.mock.patch.object(tempfile, "tempdir", long):
            server = RewardServer({"score": length})
        self.assertIn(":/tmp/", server.environment["SLUICE_REWARDS"])
        server.close()
        self.assertEqual(os.listdir(long), [])

    def test_no_thread_outlives_its_run(self):
        before = threading.active_count()
        sluice.run("builtin:grpo", SMALL, rewards={"score": length}).wait()
        self.assertEqual(threading.active_count(), before)
        with self.assertRaises(sluice.PipelineError):
            sluice.run("builtin:grpo", SMALL, rewards={"score": lambda a, b: 0.0}).wait()
        self.assertEqual(threading.active_count(), before)
        with unittest.mock.patch.dict(os.environ, SLUICE_PROGRAM="nothing"), self.assertRaises(FileNotFoundError):
            sluice.run("builtin:grpo", SMALL, rewards={"score": length})
        self.assertEqual(threading.active_count(), before)

    def test_a_connection_that_someone_keeps_open_holds_no_thread(self):
        before = threading.active_count()
        server = RewardServer({"score": length})
        key, _, address = server.environment["SLUICE_REWARDS"].partition(":")
        with Client(address, "AF_UNIX", authkey=bytes.fromhex(key)) as connection:
            connection.send_bytes(b'{"call": "score", "arguments": {"response": "four"}}')
            self.assertEqual(json.loads(connection.recv_bytes()), {"value": 4.0})
            server.close()
            self.assertEqual(threading.active_count(), before)

    def test_someone_who_hangs_up_at_once_ends_no_listening(self):
        server = RewardServer({"score": length})
        self.addCleanup(server.close)
        address = server.environment["SLUICE_REWARDS"].partition(":")[2]
        Client(address, "AF_UNIX").close()
        with Client(address, "AF_UNIX") as connection:
            self.assertTrue(connection.poll(10))  # it asks for the key

    def test_one_that_goes_on_while_its_run_dies_does_not_hold_the_end_up(self):
        before, called, over = set(threading.enumerate()), threading.Event(), threading.Event()

        def reward(response):
            called.set()
            over.wait(60)
            return 0.0

        run = sluice.run("builtin:grpo", SMALL, rewards={"score": reward})
        self.assertTrue(called.wait(60))
        self.assertIn("SIGKILL", str(killed(run)))
        self.assertFalse(over.is_set())
        over.set()
        for thread in set(threading.enumerate()) - before:
            thread.join(10)
            self.assertFalse(thread.is_alive())

    def test_a_run_with_functions_says_that_it_needs_them_again(self):
        sluice.run("builtin:grpo", SMALL, run_dir="run", rewards={"score": length}).wait()
        longer = {"pipeline.iterations": 4}
        with self.assertRaisesRegex(sluice.PipelineError, "rewards of this run are functions of a Python program"):
            sluice.resume("run", longer)
        self.assertEqual(len(sluice.resume("run", longer, rewards={"score": length}).wait().metrics()), 4)

    def test_a_function_that_is_not_as_a_scorer_should_be_is_refused_before_anything_runs(self):
        with self.assertRaisesRegex(sluice.PipelineError, "parameters of no known convention"):
            sluice.run("builtin:grpo", SMALL, rewards={"score": lambda a, b: 0.0}).wait()


class Views(Case):
    def test_a_plan_is_that_of_the_command_line(self):
        overrides = {"pipeline.iterations": 7, "nodes.advantages.normalize_std": False}
        plan = sluice.plan("builtin:grpo", overrides)
        done = command_line("plan", "builtin:grpo", "--set", "pipeline.iterations=7", "--set",
                            "nodes.advantages.normalize_std=false", "--format", "json")
        self.assertEqual(plan, json.loads(done.stdout))

    def test_validate_gives_the_warnings(self):
        self.assertEqual(sluice.validate("builtin:grpo"), [])
        warning, = sluice.validate("builtin:grpo", {"runtime.cores": 4096})
        self.assertEqual((warning["severity"], warning["kind"]), ("warning", "cores-exceed-machine"))


class Errors(Case):
    def test_the_text_is_that_of_the_command_line(self):
        (self.folder / "p.toml").write_text('extends = "builtin:grpo"\n[nodes.advantages]\nepsilonn = 1\n[budget]\n'
                                            'tokens_in_flight = 3\n')
        told = command_line("validate", "p.toml").stderr.rstrip("\n")
        for call in (sluice.validate, sluice.plan, sluice.run):
            with self.assertRaises(sluice.PipelineError) as raised:
                call("p.toml")
            self.assertEqual(str(raised.exception), told)
            self.assertEqual(raised.exception.code, 78)
        self.assertFalse((self.folder / "runs").exists())

    def test_validate_gives_each_problem(self):
        with self.assertRaises(sluice.PipelineError) as raised:
            sluice.validate("builtin:grpo", {"nodes.advantages.epsilonn": 1, "nodes.generate.modell": "x"})
        self.assertEqual([problem["kind"] for problem in raised.exception.problems], ["unknown-key"] * 2)

    def test_data_that_is_missing_is_a_wrong_pipeline(self):
        with self.assertRaisesRegex(sluice.PipelineError, "nothing.jsonl"):
            sluice.run("builtin:grpo", {"nodes.prompts.path": "nothing.jsonl"})

    def test_a_program_that_was_killed_in_silence_says_by_which_signal(self):
        for code, name in ((-9, "SIGKILL"), (-40, "40")):
            self.assertEqual(str(error_of("", code)), f"rlhf-run was killed by signal {name}, and said nothing")
        self.assertEqual(str(error_of("", 143)), "rlhf-run was interrupted by signal SIGTERM, and said nothing")

    def test_tables_that_are_none_are_a_wrong_pipeline(self):
        for table in (3, {"name": 3}):
            with self.assertRaises(sluice.PipelineError):
                sluice.run({"extends": "builtin:grpo", "pipeline": table})
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_what_is_found_wrong_after_the_pipeline_was_written_is_raised_before_run_returns(self):
        with self.assertRaisesRegex(sluice.PipelineError, "parameters of no known convention"):
            sluice.run("builtin:grpo", SMALL, run_dir="run", rewards={"score": lambda a, b: 0.0})
        with self.program("mkdir run; touch run/pipeline.toml; sleep 0.5; rm -r run; echo error: the model "
                          "is cut off >&2; exit 78"):
            with self.assertRaisesRegex(sluice.PipelineError, "^error: the model is cut off$"):
                sluice.run("p.toml", run_dir="run")

    def test_a_run_that_fails_when_its_folder_is_gone_says_why(self):
        with self.program("mkdir run; touch run/pipeline.toml run/status.json; until [ -e go ]; do sleep 0.1; done; rm -r run; "
                          "sleep 0.5; echo error: no folder >&2; exit 1"):
            run = sluice.run("p.toml", run_dir="run")
        (self.folder / "go").touch()
        while run.folder.exists():
            time.sleep(0.01)
        with self.assertRaisesRegex(sluice.RunError, "^error: no folder$"):
            list(run)

    def test_who_interrupts_the_start_leaves_no_run_behind(self):
        with self.program("echo $$ > pid; exec sleep 60"), self.assertRaises(KeyboardInterrupt):
            with unittest.mock.patch("time.sleep", side_effect=self.interrupt_when_there_is_a_pid):
                sluice.run("p.toml", run_dir="run")
        self.assertFalse(pathlib.Path("/proc", (self.folder / "pid").read_text().strip()).exists())

    def interrupt_when_there_is_a_pid(self, _):
        if (self.folder / "pid").exists() and (self.folder / "pid").read_text():
            raise KeyboardInterrupt

    def test_a_value_that_no_pipeline_has_names_its_type(self):
        with self.assertRaisesRegex(TypeError, "value of type object"):
            sluice.plan("builtin:grpo", {"pipeline.seed": object()})


class Documentation(Case):
    def test_what_it_shows_runs(self):
        shown = re.findall(r"(?ms)^```python\n(.*?)^```$", (ROOT / "docs/python.md").read_text())
        self.assertGreater(len(shown), 3)
        names = {}
        with contextlib.redirect_stdout(io.StringIO()) as said:
            for block in shown:
                exec(compile(block, "docs/python.md", "exec"), names)
        self.assertIn("did you mean max_new_tokens?", said.getvalue())


if __name__ == "__main__":
    unittest.main()
