"""Ranks that are killed or stopped at random moments, from the first one of the run on. SLUICE_LOSSES: how many, 200 for a long
test."""

import os
import random
import re
import signal
import subprocess
import time
import unittest

from ranks_test import children_of, ended, rank_of
from support import DONE, PPO, Case, run, sets, start, wait_for, with_roles

LOSSES = int(os.environ.get("SLUICE_LOSSES", "3"))
ITERATIONS = 40
SETTINGS = {"pipeline.iterations": ITERATIONS, "cluster.slots": 4, "checkpoint.every_iterations": 3,
            "nodes.prompts.groups_per_iteration": 8, "nodes.held_out.every_iterations": 4, "cluster.join_seconds": 12}
# With little credit, so that ranks make groups for each other: a group has up to 56 tokens, the other path has 256.
LITTLE_CREDIT = (SETTINGS | {"nodes.prompts.groups_per_iteration": 16, "budget.micro_batch_tokens": 56,
                             "budget.tokens_in_flight": 112 + 256})
SECONDS_TO_END = 60  # less than the time to join or to stall of a run that is not told here


class RankLosses(Case):
    def lose_one(self, name, settings, chance, apart):
        """Starts a run, and takes a rank from it; what the others said. Apart: of ranks that sample or of ranks that train."""
        ranks = 4 if apart else chance.choice((2, 4))
        pipeline = self.folder / "apart.toml" if apart else PPO
        launched = start("launch", "--ranks", str(ranks), pipeline, "--run-dir", str(self.folder / name), *sets(**settings),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        wait_for("the ranks", lambda: len(children_of(launched.pid)) == ranks)
        pids = {rank_of(pid): pid for pid in children_of(launched.pid)}
        time.sleep(chance.uniform(0, 2 + ranks))
        lost, how = chance.randrange(ranks), chance.choice((signal.SIGKILL, signal.SIGSTOP))
        if ended(pids[lost]):
            launched.communicate(timeout=60)
            return None  # it was done before
        os.kill(pids[lost], how)
        begin = time.monotonic()
        survivors = [pid for rank, pid in pids.items() if rank != lost]
        wait_for("the end of all others", lambda: all(ended(pid) for pid in survivors), seconds=120)
        seconds = time.monotonic() - begin
        out, said = launched.communicate(timeout=60)
        self.assertTrue(all(ended(pid) for pid in pids.values()), "something is left running")
        self.assertLessEqual(seconds, SECONDS_TO_END, said)
        done = launched.returncode == DONE or re.search(r"(?m)^done", out)  # all others were done already
        if not done:
            named = (rf"rank {lost} \(host .*, pid {pids[lost]}\)|rank {lost} \(pid .*\) was killed|rank {lost} of {ranks} did "
                     rf"not come|rank {lost} has not said")
            if lost == 0:
                named += "|nobody has served the store of the run|rank 0, which serves it, does not answer"
            self.assertRegex(out + said, named)
        return f"rank {lost} of {ranks} {how.name}: {seconds:.1f} s"

    def test_the_others_end_and_the_run_goes_on_as_if_nothing_had_been(self):
        wholes = {"whole": SETTINGS, "whole-with-little-credit": LITTLE_CREDIT}
        kinds = (("whole", False), ("whole-with-little-credit", False), ("whole", True))
        (self.folder / "apart.toml").write_text(with_roles("ppo.toml"))
        for whole, settings in wholes.items():
            done = run("launch", "--ranks", 1, PPO, "--run-dir", self.folder / whole, *sets(**settings))
            self.assertEqual(done.returncode, DONE, done.stderr)
        seed = int(os.environ.get("SLUICE_LOSSES_SEED", "1"))
        for number in range(LOSSES):
            chance = random.Random(f"{seed} {number}")
            name, (whole, apart) = f"run-{number}", kinds[number % len(kinds)]
            settings = wholes[whole]
            with self.subTest(seed=seed, number=number):
                what = self.lose_one(name, settings, chance, apart)
                ranks = chance.choice((1, 2, 4))
                done = run("launch", "--ranks", ranks, PPO, "--run-dir", self.folder / name, "--resume", "auto",
                           *sets(**settings))
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(self.lines_of(name), self.lines_of(whole))
                self.assertEqual(self.models_of(name), self.models_of(whole))
                if LOSSES > 10:
                    print(f"{number}: {what}{', apart' if apart else ''}; on {ranks}: equal", flush=True)


if __name__ == "__main__":
    unittest.main()
