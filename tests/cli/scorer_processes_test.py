"""Processes of scorers end with the program, however it ends."""

import json
import pathlib
import signal
import subprocess
import tempfile
import time
import unittest

from support import DONE, FAILED, PPO, SMALL, Case, run, sets, start

HANGS = """
import os, time
open(os.path.join(os.path.dirname(__file__), "pid"), "w").write(str(os.getpid()))
def score(response):
    open(os.path.join(os.path.dirname(__file__), "called"), "w").close()
    time.sleep(1000)
"""

LOADS = """
import os
with open(os.path.join(os.path.dirname(__file__), "loads"), "a") as loads:
    loads.write("x")
def score(response):
    return 1.0
"""


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False


def wait_until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true() and time.monotonic() < end:
        time.sleep(0.02)
    return true()


class ScorerProcesses(Case):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / "pipeline.toml").write_text(
            f"extends = {json.dumps(str(PPO))}\n[nodes.score]\ntype = \"python_scorer\"\nfile = \"reward.py\"\n")

    def words(self, **more):
        return [self.folder / "pipeline.toml", "--run-dir", self.folder / "run", *sets(**SMALL, **more)]

    def start_and_hang(self, stdout=subprocess.DEVNULL):
        (self.folder / "reward.py").write_text(HANGS)
        program = start(*map(str, self.words()), stdout=stdout, stderr=subprocess.DEVNULL, text=True)
        self.addCleanup(program.wait)
        self.addCleanup(program.kill)
        self.assertTrue(wait_until((self.folder / "called").exists), "the function was not called")
        pid = int((self.folder / "pid").read_text())
        self.assertTrue(alive(pid))
        return program, pid

    def test_are_started_once(self):
        (self.folder / "reward.py").write_text(LOADS)
        done = run(*self.words(**{"nodes.score.workers": 3}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(len((self.folder / "loads").read_text()), 3)

    def test_killed(self):
        program, pid = self.start_and_hang()
        program.kill()
        self.assertTrue(wait_until(lambda: not alive(pid)))

    def test_interrupted_twice(self):
        program, pid = self.start_and_hang(stdout=subprocess.PIPE)
        with program.stdout:
            program.send_signal(signal.SIGINT)
            self.assertTrue(any(line.startswith("interrupted: ") for line in program.stdout))
            time.sleep(0.2)  # what comes sooner is the same interruption
            program.send_signal(signal.SIGINT)
            self.assertTrue(wait_until(lambda: not alive(pid)))
            self.assertIsNotNone(program.wait(60))

    def test_a_hang_ends_the_run_in_time(self):
        (self.folder / "reward.py").write_text(HANGS)
        done = run(*self.words(**{"nodes.score.timeout_seconds": 0.5}))
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertIn("node 'score' failed on micro-batch 0 of iteration 0", done.stderr)
        self.assertIn("reward.py, function score: its process did not answer within 0.5 s and was killed", done.stderr)
        self.assertFalse(alive(int((self.folder / "pid").read_text())))


if __name__ == "__main__":
    unittest.main()
