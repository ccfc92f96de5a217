"""Ctrl-C and other signals."""

import ctypes
import json
import os
import pty
import shutil
import signal
import subprocess
import time
import unittest

from support import (DONE, INTERRUPTED, MODEL, PPO, PROGRAM, ROOT, SMALL, TERMINATED, Case, metrics_so_far, read_safetensors, run,
                     sets, start, wait_for, wait_for_iteration)

HANGS_WHEN_LOADED = """
import os, time
open(os.path.join(os.path.dirname(__file__), "hangs"), "w").close()
time.sleep(1000)
"""

HANGS_WHEN_ASKED = """
import os, time
def score(response):
    open(os.path.join(os.path.dirname(__file__), "hangs"), "w").close()
    time.sleep(1000)
"""


# Where there is a file `slow` beside it each call hangs, and a file `hangs` says that one came then.
HANGS_LATER = """
import os, time
HERE = os.path.dirname(os.path.abspath(__file__))
def score(response):
    if os.path.exists(os.path.join(HERE, "slow")):
        open(os.path.join(HERE, "hangs"), "w").close()
        time.sleep(1000)
    return float(len(response) % 5)
"""

# Likewise, as an environment.
ENVIRONMENT_HANGS_LATER = """
import json, os, sys, time
for line in sys.stdin:
    if os.path.exists("slow"):
        open("hangs", "w").close()
        time.sleep(1000)
    print(json.dumps({"id": json.loads(line)["id"], "done": True}), flush=True)
"""

TAKES_LONG = """
import time
def score(queries, prompts, labels):
    time.sleep(5)
    return [float(len(query) % 5) for query in queries]
"""


ENVIRONMENT_TAKES_LONG = """
import json, sys, time
for line in sys.stdin:
    time.sleep(5)
    print(json.dumps({"id": json.loads(line)["id"], "done": True}), flush=True)
"""


class Interrupt(Case):
    def with_scorer(self, text):
        self.write("reward.py", text)
        return self.write("p.toml", f'extends = "{PPO}"\n[nodes.score]\ntype = "python_scorer"\nfile = "reward.py"\n'
                          'timeout_seconds = 900.0\n')

    def with_environment(self, text):
        self.write("env.py", text)
        environment = '{ type = "process", command = ["python3", "env.py"], folder = ".", workers = 2, timeout_seconds = 900.0 }'
        return self.write("p.toml", f'extends = "{PPO}"\n[nodes.generate]\nenvironment = {environment}\n')

    def start_long_run(self, *words, **options):
        self.run_folder = self.folder / "run"
        overrides = {**SMALL, "pipeline.iterations": 100000, **options.pop("settings", {})}
        process = start("run", PPO, "--run-dir", self.run_folder, *sets(**overrides), *words, **options)
        self.addCleanup(self.end, process)
        return process

    def start_run_with(self, scorer, **options):
        """A run with a scorer that hangs, once it does."""
        self.run_folder = self.folder / "run"
        shutil.rmtree(self.run_folder, ignore_errors=True)
        hangs = self.folder / "hangs"
        hangs.unlink(missing_ok=True)
        self.write("reward.py", scorer)
        pipeline = self.write("p.toml", f'extends = "{PPO}"\n[nodes.score]\ntype = "python_scorer"\nfile = "reward.py"\n')
        process = start("run", pipeline, "--run-dir", self.run_folder, *sets(**SMALL), **options)
        self.addCleanup(self.end, process)
        wait_for("the scorer", hangs.exists)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def wait_for_iteration(self):
        wait_for_iteration(self.run_folder)

    def rows(self):
        return metrics_so_far(self.run_folder)

    def assert_saved(self):
        """Every iteration that was reported is in the newest checkpoint."""
        rows = self.rows()
        self.assertEqual([row["iteration"] for row in rows], list(range(len(rows))))
        self.assertEqual((self.run_folder / "checkpoint").resolve().name, str(len(rows)))
        verified = run("checkpoints", "verify", self.run_folder)
        self.assertEqual(verified.returncode, 0, verified.stdout + verified.stderr)
        self.assertFalse((self.run_folder / "lock").exists())

    def test_a_run_that_measures_ends_whatever_it_has_begun(self):
        """What leads had finished the iteration, and what measures waited for ever to begin."""
        for moment in range(4):
            self.run_folder = self.folder / f"run-{moment}"
            process = start("run", ROOT / "pipelines/grpo.toml", "--run-dir", self.run_folder,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, *sets(**{
                                "pipeline.iterations": 100000, "nodes.held_out.every_iterations": 2, "runtime.grace_seconds": 2}))
            self.addCleanup(self.end, process)
            self.wait_for_iteration()
            time.sleep(moment * 0.07)
            process.send_signal(signal.SIGTERM)
            said, _ = process.communicate(timeout=60)
            self.assertEqual(process.returncode, TERMINATED, said)
            self.assert_saved()

    def test_once_finishes_what_is_in_flight_and_saves(self):
        process = self.start_long_run(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for_iteration()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        rows = self.rows()
        self.assertLess(len(rows), 100000)
        self.assertIn("interrupted: finishing what is in flight, at most 20 s; again to stop at once\n", out)
        self.assertRegex(out, rf"ppo interrupted: {len(rows)} iterations? in ")
        self.assertEqual(out.splitlines()[-1], f"  resume with rlhf-run resume {self.run_folder}")
        events = json.loads((self.run_folder / "trace.json").read_text())
        self.assertEqual({event["args"]["iteration"] for event in events if event["name"] == "train"}, set(range(len(rows))))
        actor = read_safetensors(self.run_folder / "checkpoint/actor/model.safetensors")
        self.assertEqual(set(actor), set(read_safetensors(MODEL / "model.safetensors")))
        self.assert_saved()

    def test_terminate_is_as_good_as_ctrl_c_and_has_its_own_exit_code(self):
        process = self.start_long_run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for_iteration()
        process.terminate()
        self.assertEqual(process.wait(timeout=60), TERMINATED)
        self.assert_saved()

    def test_what_was_interrupted_goes_on(self):
        process = self.start_long_run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for_iteration()
        process.terminate()
        process.wait(timeout=60)
        done = len(self.rows())
        resumed = run("resume", self.run_folder, *sets(**{"pipeline.iterations": done + 2}))
        self.assertEqual(resumed.returncode, 0, resumed.stderr)
        self.assertRegex(resumed.stdout, rf"ppo finished: {done + 2} iterations, the last 2 in ")
        self.assert_saved()

    def test_what_goes_on_still_says_which_file_a_value_came_from(self):
        pipeline = self.layer("[pipeline]\niterations = 1\n", "mine.toml")
        self.assertEqual(run("run", pipeline, "--run-dir", self.folder / "run").returncode, DONE)
        first = (self.folder / "run/pipeline.toml").read_text()
        self.assertRegex(first, rf"iterations = 1 +# {self.folder}/mine.toml:3\n")
        for iterations in (2, 3):
            done = run("resume", self.folder / "run", "--set", f"pipeline.iterations={iterations}")
            self.assertEqual(done.returncode, DONE, done.stderr)
        after = (self.folder / "run/pipeline.toml").read_text()
        self.assertRegex(after, r"iterations = 3 +# --set\n")
        self.assertRegex(after, rf"tokens_in_flight = 8448 +# {self.folder}/small.toml:\d+\n")
        self.assertNotIn(f"# {self.folder}/run/pipeline.toml", after)
        self.assertEqual(run("plan", "--config", self.folder / "run/pipeline.toml").stdout, after)

    def test_without_grace_what_is_in_flight_is_dropped(self):
        process = self.start_long_run(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                                      settings={"runtime.grace_seconds": 0})
        self.wait_for_iteration()
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, TERMINATED, err)
        self.assertIn("at most 0", out)
        self.assert_saved()

    def test_twice_ends_at_once(self):
        for first, second, code in ((signal.SIGINT, signal.SIGTERM, TERMINATED), (signal.SIGTERM, signal.SIGINT, INTERRUPTED)):
            with self.subTest(first):
                process = self.start_run_with(HANGS_WHEN_ASKED, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                process.send_signal(first)
                self.assertTrue(any(line.startswith("interrupted: ") for line in process.stdout))
                time.sleep(0.2)
                process.send_signal(second)
                out, _ = process.communicate(timeout=60)
                self.assertEqual(process.returncode, code)
                self.assertNotIn("ppo interrupted:", out)
                self.assertFalse((self.run_folder / "checkpoint").exists())
                self.assertTrue((self.run_folder / "lock").exists())

    def test_twice_at_once_is_once_as_timeout_sends_it(self):
        for number, code in ((signal.SIGINT, INTERRUPTED), (signal.SIGTERM, TERMINATED)):
            with self.subTest(number):
                shutil.rmtree(self.folder / "run", ignore_errors=True)
                process = self.start_long_run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
                self.wait_for_iteration()
                self.send_twice_at_once(process.pid, number)
                _, err = process.communicate(timeout=60)
                self.assertEqual(process.returncode, code, err)
                self.assert_saved()

    @staticmethod
    def send_twice_at_once(pid, number):
        """While it is stopped, so that both come when it goes on: one to the process, one to its first thread, else they were
        one."""
        os.kill(pid, signal.SIGSTOP)
        os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT)
        os.kill(pid, number)
        ctypes.CDLL(None).tgkill(pid, pid, number)
        os.kill(pid, signal.SIGCONT)

    def test_before_anything_runs_ctrl_c_ends_at_once(self):
        process = self.start_run_with(HANGS_WHEN_LOADED, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        process.send_signal(signal.SIGINT)
        self.assertEqual(process.wait(timeout=60), -signal.SIGINT)

    def test_hanging_up_does_not_end_a_run(self):
        process = self.start_long_run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for_iteration()
        process.send_signal(signal.SIGHUP)
        seen = len(self.rows())
        wait_for("two more iterations", lambda: len(self.rows()) >= seen + 2)
        process.terminate()
        self.assertEqual(process.wait(timeout=60), TERMINATED)
        self.assert_saved()

    # What another program works on would take far longer than the grace: it is given up.
    def test_a_scorer_that_takes_longer_than_the_grace_is_not_waited_for(self):
        self.is_given_up(self.with_scorer(HANGS_LATER))

    def test_an_environment_that_takes_longer_than_the_grace_is_not_waited_for(self):
        self.is_given_up(self.with_environment(ENVIRONMENT_HANGS_LATER))

    def is_given_up(self, pipeline):
        self.run_folder = self.folder / "run"
        settings = {**SMALL, "pipeline.iterations": 100000, "runtime.grace_seconds": 0.5}
        process = start("run", pipeline, "--run-dir", self.run_folder, *sets(**settings), stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(self.end, process)
        self.wait_for_iteration()
        (self.folder / "slow").touch()
        wait_for("what hangs", (self.folder / "hangs").exists)
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, TERMINATED, out + err)
        self.assertNotIn("error:", err)
        self.assert_saved()

    # It has a limit of its own.
    def test_what_waits_outside_may_take_longer_than_what_counts_as_a_stall(self):
        few = {"nodes.prompts.groups_per_iteration": 2, "nodes.generate.samples_per_prompt": 1}
        for name, pipeline, less in (("scorer", self.with_scorer, {}), ("environment", self.with_environment, few)):
            with self.subTest(name):
                # 3 seconds: for less any run may wait on a machine that has much else to do
                settings = {**SMALL, "pipeline.iterations": 1, "runtime.stall_seconds": 3, **less}
                done = run("run", pipeline(TAKES_LONG if name == "scorer" else ENVIRONMENT_TAKES_LONG), "--run-dir",
                           self.folder / name, *sets(**settings))
                self.assertEqual(done.returncode, DONE, done.stderr)

    def test_stopped_for_longer_than_what_counts_as_a_stall_it_goes_on(self):
        process = self.start_long_run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, settings={"runtime.stall_seconds": 4})
        self.wait_for_iteration()
        process.send_signal(signal.SIGSTOP)
        time.sleep(6)
        process.send_signal(signal.SIGCONT)
        before = len(self.rows())
        wait_for("another iteration", lambda: len(self.rows()) > before + 2)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        self.assert_saved()

    def test_it_saves_when_it_is_asked_to(self):
        process = self.start_long_run(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for_iteration()
        self.assertFalse((self.run_folder / "checkpoint").exists())
        process.send_signal(signal.SIGUSR1)
        wait_for("a checkpoint", (self.run_folder / "checkpoint").exists)
        self.assertIsNone(process.poll())
        process.terminate()
        out, _ = process.communicate(timeout=60)
        self.assertIn("asked to save: the first iteration is saved whose groups are not all drawn yet\n", out)
        self.assert_saved()

    def test_readers_of_its_output_may_go(self):
        process = self.start_long_run(stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.readline()
        process.stdout.close()
        process.stderr.close()
        seen = len(self.rows())
        wait_for("two more iterations", lambda: len(self.rows()) >= seen + 2)
        process.terminate()
        self.assertEqual(process.wait(timeout=60), TERMINATED)
        self.assert_saved()

    def test_a_terminal_may_be_closed(self):
        master, slave = pty.openpty()
        process = self.start_long_run(stdin=slave, stdout=slave, stderr=slave, start_new_session=True)
        os.close(slave)
        self.wait_for_iteration()
        os.close(master)
        seen = len(self.rows())
        wait_for("two more iterations", lambda: len(self.rows()) >= seen + 2)
        process.terminate()
        self.assertEqual(process.wait(timeout=60), TERMINATED)
        self.assert_saved()

    def test_started_without_standard_streams_it_writes_no_message_into_its_files(self):
        self.run_folder = self.folder / "run"
        words = ["run", str(PPO), "--run-dir", str(self.run_folder), *sets(**SMALL)]
        done = subprocess.run(["sh", "-c", '"$0" "$@" <&- >&- 2>&-', PROGRAM, *words], cwd=ROOT, timeout=120)
        self.assertEqual(done.returncode, 0)
        self.assert_saved()


if __name__ == "__main__":
    unittest.main()
