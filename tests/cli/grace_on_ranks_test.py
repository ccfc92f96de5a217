"""A run on several ranks that is interrupted and has not finished when its grace is over."""

import os
import pathlib
import signal
import subprocess
import unittest

from support import DONE, INTERRUPTED, PPO, Case, run, sets, start, wait_for, wait_for_iteration

ITERATIONS = 6
SETTINGS = {"pipeline.iterations": ITERATIONS, "cluster.slots": 2, "nodes.prompts.groups_per_iteration": 8,
            "runtime.grace_seconds": 0.2, "nodes.generate.samples_per_prompt": 2}

# Where there is a file `slow` each response behind the first iteration, of 16 on both ranks, takes long, and a file `asked` says
# that one came then.
SCORER = """
import os, time
HERE = os.path.dirname(os.path.abspath(__file__))
asked = 0
def score(response):
    global asked
    asked += 1
    if asked > 16 and os.path.exists(os.path.join(HERE, "slow")):
        open(os.path.join(HERE, "asked"), "w").close()
        time.sleep(0.5)
    return float(len(response) % 5)
"""


class GraceOnRanks(Case):
    def setUp(self):
        super().setUp()
        self.write("reward.py", SCORER)
        self.pipeline = self.write("p.toml", f'extends = "{PPO}"\n[nodes.score]\ntype = "python_scorer"\nfile = "reward.py"\n')
        self.slow, self.asked = self.folder / "slow", self.folder / "asked"

    def words(self, name, *more):
        return ["launch", "--ranks", "2", self.pipeline, "--run-dir", self.folder / name, *sets(**SETTINGS), *more]

    def saved_bytes(self, name):
        folder = (self.folder / name / "checkpoint").resolve()
        return {str(file.relative_to(folder)): file.read_bytes() for file in sorted(folder.rglob("*.safetensors"))}

    def interrupt(self, name, target):
        """A run that is interrupted in an iteration that takes long. Returns how many were complete when it began."""
        self.asked.unlink(missing_ok=True)
        self.slow.touch()
        launched = start(*map(str, self.words(name)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launched.kill)
        wait_for("a response that takes long", self.asked.exists)
        wait_for_iteration(self.folder / name)
        before = len(self.lines_of(name))
        os.kill(target(launched), signal.SIGINT)
        out, said = launched.communicate(timeout=60)
        self.slow.unlink()
        self.assertEqual(launched.returncode, INTERRUPTED, out + said)
        return before

    def test_all_ranks_drop_the_same_iterations_and_what_is_resumed_is_as_if_nothing_had_happened(self):
        whole = run(*self.words("whole"))
        self.assertEqual(whole.returncode, DONE, whole.stderr)
        for name, target in (("all", lambda launched: launched.pid), ("one", self.rank_1)):
            with self.subTest(name):
                before = self.interrupt(name, target)
                saved = int((self.folder / name / "checkpoint").resolve().name)
                self.assertEqual(len(self.lines_of(name)), saved)
                self.assertLess(saved, min(before + 2, ITERATIONS), "what had begun was finished, however long it took")
                self.assertEqual([path.name for path in (self.folder / name / "checkpoints").iterdir()], [str(saved)])
                resumed = run(*self.words(name, "--resume", "auto"))
                self.assertEqual(resumed.returncode, DONE, resumed.stdout + resumed.stderr)
                self.assertEqual(self.lines_of(name), self.lines_of("whole"))
                self.assertEqual(self.saved_bytes(name), self.saved_bytes("whole"))

    @staticmethod
    def rank_1(launched):
        children = subprocess.run(["pgrep", "-P", str(launched.pid)], capture_output=True, text=True).stdout.split()
        return next(int(pid) for pid in children if "RANK=1" in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0"))


if __name__ == "__main__":
    unittest.main()
