"""A run folder belongs to one process at a time."""

import json
import os
import pathlib
import signal
import socket
import subprocess
import time
import unittest

from ranks_test import children_of
from support import DONE, PPO, PROGRAM, SMALL, WRONG_PIPELINE, Case, run, sets, start, wait_for, wait_for_iteration


class Lock(Case):
    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"

    def start_long_run(self):
        process = start("run", PPO, "--run-dir", self.run_folder,
                        *sets(**SMALL | {"pipeline.iterations": 100000, "checkpoint.every_iterations": 1}),
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
                self.assert_refused(refused, f"the run folder {self.run_folder} is in use by process {process.pid} on "
                                    f"{socket.gethostname()} since 20", f"kill {process.pid} saves the run")
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
                done = run("run", PPO, "--resume", "auto", "--run-dir", self.run_folder,
                           *sets(**SMALL | {"pipeline.iterations": 1}))
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


class FolderOfNoName(Case):
    """Runs that are given no folder."""

    def start_here(self, *words, **settings):
        process = subprocess.Popen([PROGRAM, *map(str, words), *sets(**SMALL | settings)], cwd=self.folder,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.kill)
        return process

    def folders(self):
        return sorted((self.folder / "runs").iterdir())

    def test_runs_that_start_in_the_same_second_have_one_each(self):
        """Also those of several ranks, which come a second after their name is chosen."""
        commands = 2 * [("run", PPO), ("launch", "--ranks", 2, PPO)]
        processes = [self.start_here(*words, **{"pipeline.iterations": 1}) for words in commands]
        for process in processes:
            self.assertEqual(process.wait(timeout=120), DONE, process.stderr.read())
        self.assertEqual(len(self.folders()), 4)
        for folder in self.folders():
            self.assertRegex(folder.name, r"^ppo-\d{8}-\d{6}(-[2-4])?$")
            self.assertEqual(len((folder / "metrics.jsonl").read_text().splitlines()), 1)

    def test_a_run_that_is_refused_leaves_none(self):
        """Also one of several ranks, for which `launch` takes the name."""
        for words in (("run", PPO), ("launch", "--ranks", 2, PPO)):
            with self.subTest(words[0]):
                process = self.start_here(*words, **{"nodes.generate.max_prompt_tokens": 1})
                self.assertEqual(process.wait(timeout=120), WRONG_PIPELINE, process.stderr.read())
                self.assertEqual(self.folders(), [])

    def test_ranks_that_do_not_meet_leave_none(self):
        launched = self.start_here("launch", "--ranks", 2, PPO)
        wait_for("the ranks", lambda: len(children_of(launched.pid)) == 2)
        missing = max(children_of(launched.pid))
        os.kill(missing, signal.SIGSTOP)  # so the other one waits
        wait_for("its stop", lambda: pathlib.Path(f"/proc/{missing}/stat").read_text().rpartition(") ")[2][0] == "T")
        launched.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        self.assertEqual(len(self.folders()), 1)
        os.kill(missing, signal.SIGCONT)
        self.assertEqual(launched.wait(timeout=120), 128 + signal.SIGTERM, launched.stderr.read())
        self.assertEqual(self.folders(), [])


if __name__ == "__main__":
    unittest.main()
