"""Ctrl-C, and what a person at a terminal sees while a run goes on."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import subprocess
import termios
import time
import unittest

from support import INTERRUPTED, MODEL, PPO, SMALL, Case, read_safetensors, sets, start


class Interrupt(Case):
    def start_long_run(self, **options):
        self.run_folder = self.folder / "run"
        overrides = {**SMALL, "pipeline.iterations": 100000}
        process = start("run", PPO, "--run-dir", self.run_folder, *sets(**overrides), **options)
        self.addCleanup(self.end, process)
        return process

    @staticmethod
    def end(process):
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            if stream:
                stream.close()

    def wait_for_iteration(self):
        metrics = self.run_folder / "metrics.jsonl"
        for _ in range(3000):
            if metrics.exists() and metrics.stat().st_size > 0:
                return
            time.sleep(0.01)
        self.fail("no iteration was completed")

    def test_once_finishes_what_is_in_flight_and_saves(self):
        process = self.start_long_run(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for_iteration()
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED, err)
        rows = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["iteration"] for row in rows], list(range(len(rows))))
        self.assertLess(len(rows), 100000)
        self.assertRegex(out, rf"ppo interrupted: {len(rows)} iterations? in ")
        events = json.loads((self.run_folder / "trace.json").read_text())
        self.assertEqual({event["args"]["iteration"] for event in events if event["name"] == "train"}, set(range(len(rows))))
        actor = read_safetensors(self.run_folder / "checkpoint/actor/model.safetensors")
        self.assertEqual(set(actor), set(read_safetensors(MODEL / "model.safetensors")))

    def test_terminate_is_as_good_as_ctrl_c(self):
        process = self.start_long_run(stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        self.wait_for_iteration()
        process.terminate()
        self.assertEqual(process.wait(timeout=60), INTERRUPTED)
        self.assertTrue((self.run_folder / "checkpoint/critic/config.json").exists())

    def test_twice_ends_at_once(self):
        process = self.start_long_run(stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.wait_for_iteration()
        process.send_signal(signal.SIGSTOP)  # so that both signals are there before it goes on
        process.send_signal(signal.SIGINT)
        process.send_signal(signal.SIGTERM)
        process.send_signal(signal.SIGCONT)
        out, _ = process.communicate(timeout=60)
        self.assertEqual(process.returncode, INTERRUPTED)
        self.assertNotIn("ppo interrupted", out)
        self.assertFalse((self.run_folder / "checkpoint").exists())


class Terminal(Case):
    ITERATIONS = 30

    def frames_on(self, columns):
        """What a terminal of that width shows, one text for each time the line is redrawn."""
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        overrides = {**SMALL, "pipeline.iterations": self.ITERATIONS}
        process = start("run", PPO, "--run-dir", self.folder / "run", *sets(**overrides), stdout=slave, stderr=slave)
        os.close(slave)
        screen = b""
        with contextlib.suppress(OSError):  # the other end is closed
            while piece := os.read(master, 65536):
                screen += piece
        os.close(master)
        self.assertEqual(process.wait(timeout=60), 0)
        frames = screen.decode().split("\r\x1b[K")
        self.assertGreater(len(frames), 3, screen)
        return frames

    def test_a_line_with_a_bar_is_redrawn_and_gives_way_to_the_summary(self):
        first, *live, last = self.frames_on(columns=200)
        self.assertEqual(first, "")
        for frame in live:
            self.assertRegex(frame, r"^ppo  [#-]{16} \d+ %  .*iteration \d+/30.*   in flight \S+/8.2k   cpu:1 \w+   cpu \w+$")
        self.assertTrue(any(re.search(r"about \d\S* s left   iteration \d+/30   score \d\.\d+   KL ", frame) for frame in live),
                        live)
        self.assertRegex(last, r"^ppo finished: 30 iterations in ")

    def test_a_narrow_terminal_shows_one_line_that_still_says_how_long_it_takes(self):
        live = self.frames_on(columns=60)[1:-1]
        for frame in live:
            self.assertLess(len(frame), 60)
            self.assertNotIn("\n", frame)
        self.assertTrue(any(frame.startswith("ppo  #") and " left " in frame for frame in live), live)


if __name__ == "__main__":
    unittest.main()
