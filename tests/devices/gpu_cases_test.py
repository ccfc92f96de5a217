"""A case of bench/gpu/run that fails, hangs or ends its process spoils no other."""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent / "bench/gpu"))
from cases import Case, Failed, LeftOut, output_of, run_cases  # noqa: E402

LONG = 600  # seconds that nobody waits for


def raises(error):
    raise error


def hangs_with_a_child(file):
    child = subprocess.Popen(["sleep", str(LONG)])
    file.write_text(str(child.pid))
    child.wait()


def is_running(pid):
    """Not so one that has ended and that nobody has asked for."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


class Cases(unittest.TestCase):
    def answers(self, *cases, seconds=LONG):
        lines, answers = [], {}
        run_cases("part", [Case(f"case {number}", *case) for number, case in enumerate(cases)], seconds, answers, lines.append)
        self.assertEqual([json.loads(line) for line in lines], list(answers.values()))
        return list(answers.values())

    def assert_failed(self, answer, why):
        self.assertIs(answer["ok"], False)
        self.assertIn(why, answer["why"])

    def test_one_that_fails_says_why(self):
        failed, broken, left_out, fine = self.answers((LONG, lambda: raises(Failed("too far"))),
                                                      (LONG, lambda: raises(KeyError("unit"))),
                                                      (LONG, lambda: raises(LeftOut("no GPU"))), (LONG, lambda: {"figure": 3}))
        self.assert_failed(failed, "too far")
        self.assert_failed(broken, "KeyError: 'unit'")
        self.assertEqual((left_out["ok"], left_out["why"]), (None, "no GPU"))
        self.assertEqual((fine["ok"], fine["figure"]), (True, 3))

    def test_one_that_hangs_is_ended_with_all_that_it_started(self):
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / "pid"
            hung, fine = self.answers((1, lambda: hangs_with_a_child(file)), (LONG, dict))
            child = int(file.read_text())
        self.assert_failed(hung, "not done in 1 s")
        self.assertTrue(fine["ok"])
        for _ in range(100):
            if not is_running(child):
                break
            time.sleep(0.05)
        self.assertFalse(is_running(child))

    def test_one_that_takes_its_process_with_it_is_told(self):
        killed, fine = self.answers((LONG, lambda: os.kill(os.getpid(), signal.SIGSEGV)), (LONG, dict))
        self.assert_failed(killed, "ended without an answer, with -11")
        self.assertTrue(fine["ok"])

    def test_what_a_part_has_no_time_for_has_failed(self):
        for answer in self.answers((LONG, lambda: time.sleep(LONG)), (LONG, dict), seconds=0.2):
            self.assertIs(answer["ok"], False)

    def test_a_later_case_sees_what_an_earlier_one_answered(self):
        answers = {}
        run_cases("part", [Case("first", LONG, lambda: {"figure": 3}),
                           Case("second", LONG, lambda: {"twice": 2 * answers["first"]["figure"]})],
                  LONG, answers, lambda line: None)
        self.assertEqual(answers["second"]["twice"], 6)

    def test_a_program_that_fails_is_quoted(self):
        with self.assertRaisesRegex(Failed, "ended with 3: so it goes"):
            output_of(["sh", "-c", "echo so it goes >&2; exit 3"])


if __name__ == "__main__":
    unittest.main()
