"""top: a run as its folder tells it, once and on a terminal."""

import contextlib
import copy
import fcntl
import json
import os
import pty
import struct
import subprocess
import termios
import time
import unittest

from support import DONE, INTERRUPTED, PPO, WRONG_PIPELINE, WRONG_USAGE, Case, run, start

STATUS = {
    "pipeline": "hand-made", "state": "running", "pid": 0, "seconds": 20.0, "iterations": 8, "iterations_done": 2,
    "iterations_before": 0,
    "sampling_iteration": 2, "running_samples": 7, "tokens_in_flight": 500, "tokens_in_flight_peak": 900, "budget": 1000,
    "column_bytes": 1500,
    "column_bytes_peak": 3000, "resident_bytes": 50_000_000,
    "resident_bytes_peak": 60_000_000, "planned_bytes": 40_000_000, "machine_bytes": 0,
    "memory": [{"name": "KV cache", "planned_bytes": 9000, "peak_bytes": 4000}],
    "executors": [{"name": "cpu", "threads": 2, "working_on": "train", "for_seconds": 1.5, "busy_seconds": 5.0, "queued": 1}],
    "nodes": [{"name": "train", "executor": "cpu", "micro_batches": 4, "tokens": 2000, "busy_seconds": 4.0, "queued": 1,
               "held": 0, "waits_for": ""}],
    "edges": [{"from": "generate", "to": "train", "micro_batches": 1, "tokens": 500, "bytes": 1500}],
    "ranks": [],
}

OTHER_SCREEN, FIRST_SCREEN = b"\x1b[?1049h", b"\x1b[?1049l"


class TopCase(Case):
    def write_status(self, **changes):
        """As a run writes it: whole, under its name. The process is this one unless it is said otherwise."""
        status = {**copy.deepcopy(STATUS), "pid": os.getpid(), **changes}
        self.write("status.json.tmp", json.dumps(status)).rename(self.folder / "status.json")


class Once(TopCase):
    def text(self, *words):
        done = run("top", self.folder, *words)
        self.assertEqual((done.returncode, done.stderr), (DONE, ""), done.stdout)
        return done.stdout

    def test_shows_progress_budget_and_what_each_part_does(self):
        self.write_status()
        self.write("metrics.jsonl",
                   '{"iteration":0,"policy/loss":9.5}\n{"iteration":1,"policy/loss":0.25,"time/train_seconds":3.5}\n')
        text = self.text("--once")
        self.assertTrue(
            text.startswith("hand-made  running   iteration 2/8  ####------------ 25 %   elapsed 20 s   about 60 s left\n"), text)
        self.assertRegex(text, r"(?m)^budget +500 of 1\.0k tokens in flight  #{8}-{8} 50 %   peak 900")
        self.assertRegex(text, r"(?m)^KV cache +9\.0 kB +4\.0 kB$")
        self.assertRegex(text, r"(?m)^resident +40\.0 MB +60\.0 MB$")
        self.assertRegex(text, r"(?m)^cpu +2 +25 % +train +1\.5 s +1$")
        self.assertRegex(text, r"(?m)^train +cpu +20 % +4 +500 +1$")  # 2000 tokens in 4 s of work
        self.assertRegex(text, r"(?m)^generate -> train +1 +500 +1\.5 kB$")
        self.assertTrue(text.endswith("\niteration 1\npolicy/loss  0.25\n"), text)

    def test_prints_once_without_a_terminal(self):
        self.write_status()
        self.assertEqual(self.text(), self.text("--once"))
        self.assertNotIn("\x1b", self.text())

    def test_a_process_that_is_gone_has_ended_without_saying_so(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.write_status(pid=process.pid)
        self.assertIn("hand-made  ended without saying so   iteration 2/8", self.text("--once"))

    def test_a_process_that_is_not_here_but_writes_goes_on(self):
        process = subprocess.Popen(["true"])
        process.wait()
        self.write_status(pid=process.pid)
        top = start("top", self.folder, "--once", stdout=subprocess.PIPE, text=True)
        while top.poll() is None:  # the run on another machine
            time.sleep(0.1)
            self.write_status(pid=process.pid)
        with top.stdout as output:
            self.assertIn("hand-made  running   iteration 2/8", output.read())

    def test_each_end_is_called_what_it_was(self):
        for state in ("done", "failed", "interrupted", "stalled"):
            self.write_status(state=state, pid=1 << 22)
            self.assertTrue(self.text().startswith(f"hand-made  {state}   iteration 2/8"), state)

    def test_a_line_that_is_being_written_is_not_read(self):
        self.write_status()
        self.write("metrics.jsonl", '{"iteration":0,"policy/loss":9.5}\n{"iteration":1,"lo')
        self.assertIn("\niteration 0\npolicy/loss  9.5\n", self.text())

    def test_metrics_of_any_length_are_read_from_their_end(self):
        self.write_status()
        self.write("metrics.jsonl", ('{"iteration":0,"policy/loss":9.5}\n' * 10000) + '{"iteration":10000,"policy/loss":null}\n')
        self.assertIn("\niteration 10000\npolicy/loss  not finite\n", self.text())


class Refused(TopCase):
    def test_what_is_no_run_folder(self):
        self.assert_refused(run("top", self.folder / "none"), str(self.folder / "none"), "is not a folder", "such as runs/")
        self.assert_refused(run("top", PPO), str(PPO), "is not a folder")
        self.assert_refused(run("top", self.folder), str(self.folder), "neither status.json nor metrics.jsonl")

    def test_a_run_without_status(self):
        self.write("metrics.jsonl", "")
        self.assert_refused(run("top", self.folder), str(self.folder), "has not written its status yet")

    def test_files_that_hold_something_else(self):
        for content in ("", "{", "[]", "{}", json.dumps({**STATUS, "nodes": 3}), json.dumps({**STATUS, "budget": "much"}),
                        b"\xff"):
            self.write("status.json", content)
            self.assert_refused(run("top", self.folder), "status.json")
        self.write_status()
        for content in ("x\n", "[1]\n"):
            self.write("metrics.jsonl", content)
            self.assert_refused(run("top", self.folder), "metrics.jsonl")

    def test_files_that_lie_elsewhere(self):
        self.write("elsewhere/status.json", json.dumps(STATUS))
        self.write("elsewhere/metrics.jsonl", '{"secret":1}\n')
        (self.folder / "run").mkdir()
        for name in ("status.json", "metrics.jsonl"):
            (self.folder / "run" / name).symlink_to(self.folder / "elsewhere" / name)
            self.assert_refused(run("top", self.folder / "run"), f"{self.folder}/run/{name} is no file, or a link to one outside")
            (self.folder / "run/status.json").unlink()
            self.write("run/status.json", json.dumps(STATUS))
        (self.folder / "latest").symlink_to(self.folder / "elsewhere")
        self.assertEqual(run("top", self.folder / "latest").returncode, DONE)

    def test_a_folder_must_be_named(self):
        self.assertEqual(run("top").returncode, WRONG_USAGE)


class Terminal(TopCase):
    def start_top(self, *words, term="xterm"):
        """On a terminal of 24 rows and 100 columns; self.screen gathers what it is sent."""
        self.master, slave = pty.openpty()
        self.addCleanup(os.close, self.master)
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 100, 0, 0))
        self.modes = termios.tcgetattr(self.master)
        self.screen = b""
        # The terminal is also where Ctrl-C comes from: a session of its own.
        process = start("top", self.folder, *words, stdin=slave, stdout=slave, stderr=slave, start_new_session=True,
                        env={**os.environ, "TERM": term}, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        os.close(slave)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    def read_until(self, text):
        with contextlib.suppress(OSError):  # the other end is closed
            while text is None or text not in self.screen:
                self.screen += os.read(self.master, 65536)
        if text is not None:
            self.assertIn(text, self.screen)

    def finish(self, process, code):
        """What stands on the first screen after all."""
        self.read_until(None)
        self.assertEqual(process.wait(timeout=30), code, self.screen)
        self.assertEqual(self.screen.count(OTHER_SCREEN), 1)
        self.assertEqual(self.screen.count(FIRST_SCREEN), 1)
        self.assertEqual(termios.tcgetattr(self.master), self.modes)
        return self.screen.split(FIRST_SCREEN)[1].decode().replace("\r\n", "\n")

    def test_follows_a_run_to_its_end_and_leaves_the_last_state(self):
        self.write_status()
        process = self.start_top()
        self.read_until(b"iteration 2/8")
        self.write_status(iterations_done=5)
        self.read_until(b"iteration 5/8")
        self.write_status(iterations_done=8, state="done")
        last = self.finish(process, DONE)
        self.assertTrue(last.startswith("hand-made  done   iteration 8/8  ################ 100 %   elapsed 20 s\n"), last)

    def test_a_terminal_without_a_cursor_gets_one_look(self):
        self.write_status()
        for term in ("dumb", ""):
            with self.subTest(term=term):
                process = self.start_top(term=term)
                self.read_until(None)
                self.assertEqual(process.wait(timeout=30), DONE)
                self.assertNotIn(b"\x1b", self.screen)
                self.assertIn(b"iteration 2/8", self.screen)

    def test_q_quits_and_gives_the_terminal_back(self):
        self.write_status()
        process = self.start_top()
        self.read_until(b"hand-made")
        self.assertEqual(termios.tcgetattr(self.master)[3] & (termios.ICANON | termios.ECHO | termios.ISIG), termios.ISIG)
        os.write(self.master, b"xq")
        self.assertEqual(self.finish(process, DONE), "")

    def test_ctrl_c_quits_and_gives_the_terminal_back(self):
        self.write_status()
        process = self.start_top()
        self.read_until(b"hand-made")
        os.write(self.master, b"\x03")
        self.assertEqual(self.finish(process, INTERRUPTED), "")

    def test_a_run_that_has_ended_is_printed_and_that_is_all(self):
        self.write_status(state="failed")
        process = self.start_top()
        self.read_until(None)
        self.assertEqual(process.wait(timeout=30), DONE)
        self.assertNotIn(b"\x1b", self.screen)
        self.assertTrue(self.screen.startswith(b"hand-made  failed"))

    def test_a_folder_that_is_removed_ends_it_with_the_terminal_given_back(self):
        self.write_status()
        process = self.start_top()
        self.read_until(b"hand-made")
        (self.folder / "status.json").unlink()
        self.assertIn("status.json", self.finish(process, WRONG_PIPELINE))


if __name__ == "__main__":
    unittest.main()
