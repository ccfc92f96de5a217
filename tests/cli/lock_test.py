"""A run folder belongs to one process at a time."""

import json
import os
import signal
import socket
import subprocess
import unittest

from support import DONE, PPO, SMALL, Case, run, sets, start, wait_for, wait_for_iteration


class Lock(Case):
    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"

    def start_long_run(self):
        process = start("run", PPO, "--run-dir", self.run_folder, *sets(**SMALL | {"pipeline.iterations": 100000, "checkpoint.every_iterations": 1}),
                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        wait_for_iteration(self.run_folder)
        return process

    def test_a_folder_in_use_is_refused_with_the_process_that_has_it(self):
        process = self.start_long_run()
        for words in (("resume", self.run_folder), ("checkpoints", "prune", self.run_folder),
                      ("run", PPO, "--resume", "auto", "--run-dir", self.run_folder), ("run", PPO, "--run-dir", self.run_folder)):
            with self.subTest(words[0]):
                refused = run(*words)
                self.assert_refused(refused, f"the run folder {self.run_folder} is in use by process {process.pid} on {socket.gethostname()} since 20",
                                    f"kill {process.pid} saves the run")
        self.assertIsNone(process.poll(), "the run that has the folder was disturbed")

    def test_looking_needs_no_lock(self):
        self.start_long_run()
        wait_for("a status", (self.run_folder / "status.json").exists)
        for words in (("checkpoints", self.run_folder), ("top", self.run_folder)):
            done = run(*words)
            self.assertEqual(done.returncode, DONE, done.stderr)

    def test_what_a_killed_process_left_is_taken_over(self):
        process = self.start_long_run()
        process.kill()
        process.wait()
        self.assertEqual(json.loads((self.run_folder / "lock").read_text())["pid"], process.pid)
        rows = len((self.run_folder / "metrics.jsonl").read_text().splitlines())
        done = run("resume", self.run_folder, *sets(**{"pipeline.iterations": rows + 1}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertFalse((self.run_folder / "lock").exists())

    def test_a_file_of_another_host_or_of_nonsense_locks_nothing(self):
        for content in ('{"pid": 1, "host": "elsewhere", "since": "2026-01-01T00:00:00Z"}\n', "", "nonsense"):
            with self.subTest(content):
                self.run_folder.mkdir(exist_ok=True)
                (self.run_folder / "lock").write_text(content)
                done = run("run", PPO, "--resume", "auto", "--run-dir", self.run_folder, *sets(**SMALL | {"pipeline.iterations": 1}))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertFalse((self.run_folder / "lock").exists())

    def test_of_many_that_start_at_once_one_runs(self):
        words = ("run", PPO, "--resume", "auto", "--run-dir", self.run_folder, *sets(**SMALL | {"pipeline.iterations": 100000}))
        processes = [start(*words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(4)]
        for process in processes:
            self.addCleanup(process.kill)
        wait_for_iteration(self.run_folder)
        refused = []
        while len(refused) < 3:
            pid, status = os.waitpid(-1, 0)
            process = next(process for process in processes if process.pid == pid)
            process.returncode = os.waitstatus_to_exitcode(status)
            refused.append(process)
            message = process.stderr.read()
            self.assertIn("is in use by ", message)
        (winner,) = [process for process in processes if process not in refused]
        winner.send_signal(signal.SIGTERM)
        self.assertEqual(winner.wait(timeout=60), 143)
        for process in processes:
            process.stderr.close()


if __name__ == "__main__":
    unittest.main()
