"""Ranks that sample are killed or stopped at random moments of a run that goes on, and come back or not. SLUICE_LOSSES: how many,
100 for a long test."""

import contextlib
import os
import pathlib
import random
import signal
import subprocess
import time
import unittest

from ranks_test import children_of, ended, rank_of
from support import DONE, FAILED, INTERRUPTED, PPO, Case, metrics_so_far, run, sets, start, wait_for, with_roles

LOSSES = int(os.environ.get("SLUICE_LOSSES", "4"))
TRAINING, SAMPLING = 2, 3
SETTINGS = {"pipeline.iterations": 12, "cluster.slots": 4, "nodes.prompts.groups_per_iteration": 16,
            "nodes.held_out.every_iterations": 4, "cluster.join_seconds": 30, "cluster.dead_after_seconds": 2}
ENDLESS = {"pipeline.iterations": 100000}  # until it is interrupted
GIVEN_UP = 75


def words_of(pid):
    with open(f"/proc/{pid}/cmdline", "rb") as file:
        return [word.decode() for word in file.read().split(b"\0")[:-1]]


def environment_of(pid):
    with open(f"/proc/{pid}/environ", "rb") as file:
        return dict(entry.decode().split("=", 1) for entry in file.read().split(b"\0") if b"=" in entry)


def is_connected(pid):
    with contextlib.suppress(FileNotFoundError):  # what is closed meanwhile
        return any(os.readlink(entry).startswith("socket:") for entry in pathlib.Path(f"/proc/{pid}/fd").iterdir())
    return False


class ElasticRuns(Case):
    def assert_equal_runs(self, name, whole):
        self.assertEqual(self.lines_of(name), self.lines_of(whole))
        self.assertEqual(self.models_of(name), self.models_of(whole))

    def launch(self, name, restarts=0, **more):
        launched = start("launch", self.folder / "apart.toml", "--restarts", str(restarts), "--run-dir", str(self.folder / name),
                         *sets(**SETTINGS | more), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launched.communicate)
        self.addCleanup(launched.kill)
        wait_for("the ranks", lambda: len(children_of(launched.pid)) == TRAINING + SAMPLING)
        return launched, {rank_of(pid): pid for pid in children_of(launched.pid)}

    def wait_for_iterations(self, name, more_than=2):
        file = self.folder / name / "metrics.jsonl"
        wait_for("some iterations", lambda: file.exists() and len(metrics_so_far(file.parent)) > more_than)

    def interrupt(self, launched):
        """What it said; it has saved."""
        launched.send_signal(signal.SIGINT)
        out, said = launched.communicate(timeout=120)
        self.assertEqual(launched.returncode, INTERRUPTED, out + said)
        return out, said

    def assert_goes_on_as_if_undisturbed(self, name, file):
        """Two iterations more."""
        more = {"pipeline.iterations": len(metrics_so_far(self.folder / name)) + 2}
        for words in ((file, "--resume", "auto", "--run-dir", self.folder / name),
                      ("--ranks", 1, PPO, "--run-dir", self.folder / "whole")):
            done = run("launch", *words, *sets(**SETTINGS | more))
            self.assertEqual(done.returncode, DONE, done.stdout + done.stderr)
        self.assert_equal_runs(name, "whole")

    def lost_now(self, name):
        return metrics_so_far(self.folder / name)[-1]["engine/lost_ranks"]

    def lose_some(self, name, chance, **settings):
        """Up to all but one of those that sample, at random. How many were lost."""
        launched, pids = self.launch(name, chance.choice((0, 3)), **settings)
        wait_for("the run", (self.folder / name / "status.json").exists)
        lost, leaders = 0, TRAINING // settings["cluster.sequence_parallel"]
        for rank in chance.sample(range(leaders, leaders + SAMPLING), chance.randint(1, SAMPLING - 1)):
            time.sleep(chance.uniform(0, 3))
            how = chance.choice((signal.SIGKILL, signal.SIGSTOP))
            with contextlib.suppress(ProcessLookupError):  # it was done before
                if not ended(pids[rank]) and not ended(pids[0]):
                    os.kill(pids[rank], how)
                    lost += 1
        out, said = launched.communicate(timeout=120)
        self.assertEqual(launched.returncode, DONE, out + said)
        self.assertTrue(all(ended(pid) for pid in pids.values()), "something is left running")
        return lost

    def setUp(self):
        super().setUp()
        (self.folder / "apart.toml").write_text(with_roles("ppo.toml", TRAINING, SAMPLING, elastic=True))

    def test_the_others_make_its_groups(self):
        # passes of two ranks round otherwise than those of one
        ranks = {1: ("--ranks", 1, PPO), 2: (self.folder / "apart.toml",)}
        kinds = {(lag, passes): {"schedule.policy_lag": lag, "cluster.sequence_parallel": passes}
                 for lag, passes in ((0, 1), (1, 1), (1, 2))}
        for kind, settings in kinds.items():
            done = run("launch", *ranks[kind[1]], "--run-dir", self.folder / f"whole-{kind}", *sets(**SETTINGS | settings))
            self.assertEqual(done.returncode, DONE, done.stderr)
        seed, lost, number = int(os.environ.get("SLUICE_LOSSES_SEED", "1")), 0, 0
        while lost < LOSSES and number < 5 * LOSSES:
            chance, name = random.Random(f"{seed} {number}"), f"run-{number}"
            kind = chance.choice(list(kinds))
            with self.subTest(seed=seed, number=number, lag=kind[0], passes=kind[1]):
                number += 1
                now = self.lose_some(name, chance, **kinds[kind])
                lost += now
                self.assert_equal_runs(name, f"whole-{kind}")
                if LOSSES > 10:
                    print(f"{number}: {now} lost, {lost} in all: equal at lag {kind[0]}, passes of {kind[1]}", flush=True)

    def test_others_are_lost_when_one_has_come_back(self):
        launched, pids = self.launch("back", 1, **ENDLESS)
        self.wait_for_iterations("back")
        first, *others = range(TRAINING, TRAINING + SAMPLING)
        os.kill(pids[first], signal.SIGKILL)
        wait_for("its loss", lambda: self.lost_now("back") == 1)
        wait_for("its return", lambda: self.lost_now("back") == 0)
        self.wait_for_iterations("back", len(metrics_so_far(self.folder / "back")) + 4)
        seen = len(metrics_so_far(self.folder / "back"))
        for rank in others:
            os.kill(pids[rank], signal.SIGKILL)
        wait_for("their loss", lambda: any(row["engine/lost_ranks"] > 0 for row in metrics_so_far(self.folder / "back")[seen:]))
        self.wait_for_iterations("back", len(metrics_so_far(self.folder / "back")) + 4)
        _, said = self.interrupt(launched)
        self.assertIn(f"warning: rank {first} has come back", said)
        self.assert_goes_on_as_if_undisturbed("back", self.folder / "apart.toml")

    def test_somebody_may_start_it_again(self):
        launched, pids = self.launch("by-hand", **ENDLESS)
        self.wait_for_iterations("by-hand")
        rank = TRAINING + SAMPLING - 1
        command, environment = words_of(pids[rank]), environment_of(pids[rank])
        # A process of that rank is there.
        second = subprocess.run(command, env=environment | {"SLUICE_TEST": "1"}, capture_output=True, text=True, timeout=120)
        self.assertNotEqual(second.returncode, DONE)
        self.assertIn(f"two processes say that they are rank {rank}", second.stderr)
        os.kill(pids[rank], signal.SIGKILL)
        wait_for("its loss", lambda: self.lost_now("by-hand") == 1)
        third = subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(third.communicate)
        self.addCleanup(third.kill)
        wait_for("its return", lambda: third.poll() is not None or self.lost_now("by-hand") == 0)
        self.wait_for_iterations("by-hand", len(metrics_so_far(self.folder / "by-hand")) + 3)
        self.interrupt(launched)
        self.assertEqual(third.wait(timeout=60), INTERRUPTED)

    def test_one_that_was_given_up_ends_by_itself(self):
        launched, pids = self.launch("given-up", **ENDLESS)
        stopped = TRAINING + SAMPLING - 1
        self.wait_for_iterations("given-up")
        os.kill(pids[stopped], signal.SIGSTOP)
        wait_for("its loss", lambda: any(row["engine/lost_ranks"] == 1 for row in metrics_so_far(self.folder / "given-up")))
        os.kill(pids[stopped], signal.SIGCONT)
        wait_for("its end", lambda: ended(pids[stopped]))
        out, said = self.interrupt(launched)
        self.assertRegex(out + said,
                         rf"rank {stopped} \(host .*, pid {pids[stopped]}\) gave no sign for \d+ s.*; the others make its groups")
        self.assertRegex(said, rf"\[rank {stopped}\] error: the others have given this rank up")
        self.assertRegex(said, rf"rank {stopped} \(pid {pids[stopped]}\) exited with code {GIVEN_UP}: its role is elastic")

    def kill_while_the_ranks_meet(self, name, restarts):
        launched, pids = self.launch(name, restarts)
        missing, killed = TRAINING + SAMPLING - 1, TRAINING
        os.kill(pids[missing], signal.SIGSTOP)  # so they wait
        wait_for("its connection", lambda: is_connected(pids[killed]))
        os.kill(pids[killed], signal.SIGKILL)
        said = launched.stderr.readline()
        os.kill(pids[missing], signal.SIGCONT)
        out, more = launched.communicate(timeout=120)
        said += more
        self.assertTrue(all(ended(pid) for pid in pids.values()), "something is left running")
        return (launched.returncode, said, f"rank {killed} (pid {pids[killed]}) was killed by signal 9 (KILL) before the run has "
                "begun: nothing was run, and ")

    def test_where_one_is_killed_while_the_ranks_meet_all_are_started_again(self):
        """The others wait for that process, and for none that would be started in its place alone."""
        done = run("launch", "--ranks", 1, PPO, "--run-dir", self.folder / "whole", *sets(**SETTINGS))
        self.assertEqual(done.returncode, DONE, done.stderr)
        code, said, lost = self.kill_while_the_ranks_meet("early", 1)
        self.assertEqual((code, said), (DONE, lost + "all ranks are started again\n"))
        self.assert_equal_runs("early", "whole")

    def test_where_one_is_killed_while_the_ranks_meet_all_end_without_restarts(self):
        code, said, lost = self.kill_while_the_ranks_meet("early", 0)
        self.assertEqual((code, said), (128 + signal.SIGKILL, lost + "the other ranks are ended\n"))
        self.assertFalse((self.folder / "early").exists())

    def test_where_none_is_left_all_end_and_what_is_trained_is_saved(self):
        launched, pids = self.launch("none", **ENDLESS)
        self.wait_for_iterations("none")
        for rank in range(TRAINING, TRAINING + SAMPLING):
            os.kill(pids[rank], signal.SIGKILL)
        out, said = launched.communicate(timeout=60)
        self.assertEqual(launched.returncode, FAILED, out + said)
        self.assertIn("no other rank is left that samples", said)
        self.assertRegex(out, r"failed: \d+ iterations? on 5 ranks")
        trained = len(metrics_so_far(self.folder / "none"))
        self.assertIn(f"last checkpoint: {self.folder / 'none' / 'checkpoints' / str(trained)}, resume with", said)
        self.assertNotIn("none was saved", said)
        self.assert_goes_on_as_if_undisturbed("none", self.folder / "none" / "pipeline.toml")

    def test_a_rank_that_trains_is_no_such_rank(self):
        """Nor is one that assists it: that one is named, and no rank that is still there is given up."""
        for passes, lost in ((1, 1), (2, SAMPLING + 1)):
            with self.subTest(passes=passes):
                launched, pids = self.launch(f"trainer-{passes}", **ENDLESS, **{"cluster.sequence_parallel": passes})
                self.wait_for_iterations(f"trainer-{passes}")
                os.kill(pids[lost], signal.SIGKILL)
                out, said = launched.communicate(timeout=60)
                self.assertEqual(launched.returncode, 128 + signal.SIGKILL, out + said)
                self.assertRegex(out + said, rf"rank {lost} \(host .*, pid {pids[lost]}\)")
                self.assertNotIn("the others make its groups", out + said)
                self.assertNotIn("go on without", out + said)


if __name__ == "__main__":
    unittest.main()
