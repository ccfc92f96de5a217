"""What is seen of a run on several ranks: one display, one metrics.jsonl, one status.json, one trace.json."""

import json
import signal
import subprocess
import unittest

from support import INTERRUPTED, PPO, Case, metrics_so_far, run, sets, start, wait_for, wait_for_iteration

SMALL = {"cluster.slots": 2, "checkpoint.every_iterations": 0, "nodes.prompts.groups_per_iteration": 8}


class RanksSeen(Case):
    def launch(self, **overrides):
        launched = start("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "run", *sets(**{**SMALL, **overrides}),
                         stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.addCleanup(launched.communicate)
        self.addCleanup(launched.kill)
        return launched

    def status(self):
        return json.loads((self.folder / "run/status.json").read_text())

    def test_a_run_that_goes_on(self):
        launched = self.launch(**{"pipeline.iterations": 4000})
        wait_for_iteration(self.folder / "run")
        wait_for("signs", lambda: all(rank["iterations_done"] > 0 for rank in self.status()["ranks"]))
        with self.subTest("status"):
            ranks = self.status()["ranks"]
            self.assertEqual([rank["rank"] for rank in ranks], [0, 1])
            self.assertEqual(ranks[0]["pid"], self.status()["pid"])
            for rank in ranks:
                self.assertRegex(rank["doing"], r"^(idle|in '\w+'( and '\w+')*), iteration \d+$")
                self.assertGreater(rank["resident_bytes"], 1 << 20)
                self.assertLess(rank["silent_seconds"], 5)
        with self.subTest("top"):
            shown = run("top", self.folder / "run", "--once").stdout
            self.assertRegex(shown, r"\nrank  host +pid +done +resident +in flight +last sign  does\n")
            for rank in ranks:
                self.assertRegex(shown, rf"\n{rank['rank']}  +{rank['host']} +{rank['pid']} ")
        with self.subTest("metrics"):
            row = metrics_so_far(self.folder / "run")[-1]
            for name in ("time/iteration_seconds", "time/node/train/busy_seconds", "time/executor/cpu/busy_seconds"):
                self.assertLessEqual(row[name + "/min"], row[name])
                self.assertLessEqual(row[name], row[name + "/max"])
            for name in ("memory/resident_bytes", "memory/column_bytes_max", "engine/tokens_in_flight_max"):
                self.assertLessEqual(row[name + "/min"], row[name + "/mean"])
                self.assertLessEqual(row[name + "/mean"], row[name])
            self.assertGreater(row["memory/resident_bytes/min"], 1 << 20)
        launched.send_signal(signal.SIGINT)
        out, said = launched.communicate(timeout=60)
        self.assertEqual(launched.returncode, INTERRUPTED, out + said)
        with self.subTest("display"):
            self.assertRegex(out, r"^ppo on 2 ranks  iteration 1/4000 ")
            self.assertRegex(out, r"(?m)^ppo interrupted: \d+ iterations on 2 ranks in ")


if __name__ == "__main__":
    unittest.main()
