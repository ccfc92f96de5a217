"""What is seen of a run on several ranks: one display, one metrics.jsonl, one status.json, one trace.json."""

import json
import os
import signal
import subprocess
import time
import unittest

from support import DONE, INTERRUPTED, PPO, Case, metrics_so_far, run, sets, start, wait_for, wait_for_iteration

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
                self.assertLess(rank["silent_seconds"], 30)
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

    def test_any_rank_may_be_asked_to_save_and_all_of_them_together_ask_once(self):
        launched = self.launch(**{"pipeline.iterations": 4000})
        wait_for_iteration(self.folder / "run")
        wait_for("signs", lambda: len(self.status()["ranks"]) == 2)
        os.kill(self.status()["ranks"][1]["pid"], signal.SIGUSR1)
        wait_for("a checkpoint", (self.folder / "run/checkpoint").exists)
        time.sleep(3)
        launched.send_signal(signal.SIGUSR1)
        first = (self.folder / "run/checkpoint").resolve()
        wait_for("another one", lambda: (self.folder / "run/checkpoint").resolve() != first)
        time.sleep(2)  # in which the sign of rank 1 comes
        launched.send_signal(signal.SIGINT)
        out, said = launched.communicate(timeout=60)
        self.assertEqual(launched.returncode, INTERRUPTED, out + said)
        self.assertEqual(out.count("asked to save: "), 2, out)

    def trace(self):
        """The slices of each process."""
        events = json.loads((self.folder / "run/trace.json").read_text())
        self.names = {event["pid"]: event["args"]["name"] for event in events if event["name"] == "process_name"}
        self.labels = {event["pid"]: event["args"]["labels"] for event in events if event["name"] == "process_labels"}
        slices = {pid: [event for event in events if event["ph"] == "X" and event["pid"] == pid] for pid in self.names}
        self.assertEqual(sum(map(len, slices.values())), sum(event["ph"] == "X" for event in events))
        return slices

    def assert_each_is_there_once(self, slices):
        batches = [(pid, event["name"], event["args"]["iteration"], event["args"]["micro_batch"])
                   for pid in slices for event in slices[pid] if "micro_batch" in event["args"]]
        self.assertEqual(len(batches), len(set(batches)))

    def test_a_trace_has_all_ranks_on_one_clock(self):
        iterations = 6
        out, said = self.launch(**{"pipeline.iterations": iterations}).communicate(timeout=60)
        slices = self.trace()
        pids = [rank["pid"] for rank in self.status()["ranks"]]
        for rank, pid in enumerate(pids):
            self.assertRegex(self.names[rank + 1], rf"^rank {rank} \(.+, pid {pid}\)$", out + said)
        self.assertEqual(self.labels, {2: "on the clock of rank 0"})
        memory = json.loads((self.folder / "run/memory.json").read_text())
        self.assertEqual([row["rank"] for row in memory["ranks"]], [0, 1])
        self.assertEqual(memory["ranks"][0]["peak_bytes"], memory["peak_bytes"])
        for row in memory["ranks"]:
            self.assertGreater(row["peak_bytes"], 1 << 20)
            self.assertGreater(row["classes"]["optimizer"], 0)
        self.assert_each_is_there_once(slices)
        for pid in slices:
            self.assertEqual({event["args"]["iteration"] for event in slices[pid] if event["name"] == "train"},
                             set(range(iterations)))

        def begins(pid, node, iteration):
            return [event["ts"] for event in slices[pid] if event["name"] == node and event["args"]["iteration"] == iteration]

        # No rank samples before all have trained: the gradients of all go into the weights.
        for iteration in range(iterations - 1):
            trained = max(min(begins(pid, "train", iteration)) for pid in slices)
            for pid in slices:
                self.assertLess(trained, min(begins(pid, "generate", iteration + 1)))

    def test_arrows_lead_from_the_rank_that_all_waited_for(self):
        iterations = 4
        out, said = self.launch(**{"pipeline.iterations": iterations}).communicate(timeout=60)
        slices = self.trace()
        events = json.loads((self.folder / "run/trace.json").read_text())
        begins, ends = ({event["id"]: event for event in events if event["ph"] == phase} for phase in ("s", "f"))
        self.assertEqual(set(begins), set(ends), out + said)
        self.assertEqual({event["args"]["iteration"] for event in begins.values()}, set(range(iterations)))
        self.assertEqual(len(begins) + len(ends), sum(event["ph"] in "sf" for event in events))
        from_nodes = set()
        for key, begin in begins.items():
            end = ends[key]
            self.assertNotEqual(begin["pid"], end["pid"])
            self.assertLessEqual(begin["ts"], end["ts"])
            for point in (begin, end):
                around = [one for one in slices[point["pid"]] if one["tid"] == point["tid"] and
                          one["ts"] - 0.01 <= point["ts"] <= one["ts"] + one["dur"] + 0.01]
                self.assertTrue(around, f"{point} is in no piece of work")
                from_nodes.update(one["name"] for one in around)
        self.assertIn("train", from_nodes)

    def test_a_rank_that_is_killed_leaves_a_trace_that_goes_on(self):
        settings = {"checkpoint.every_iterations": 2}
        launched = self.launch(**{"pipeline.iterations": 4000, **settings, "cluster.dead_after_seconds": 2})
        wait_for("a checkpoint", lambda: (self.folder / "run/checkpoint").exists())
        wait_for("signs", lambda: len(self.status()["ranks"]) == 2)
        os.kill(self.status()["ranks"][1]["pid"], signal.SIGKILL)
        out, said = launched.communicate(timeout=60)
        self.assertIn("rank 1", said, out)
        slices = self.trace()
        self.assertTrue(all(slices.values()))
        saved = int((self.folder / "run/checkpoint").resolve().name)
        done = run("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "run", "--resume", "auto",
                   *sets(**{**SMALL, **settings, "pipeline.iterations": saved + 2}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        slices = self.trace()
        self.assert_each_is_there_once(slices)
        for pid in slices:
            self.assertEqual({event["args"]["iteration"] for event in slices[pid] if event["name"] == "train"},
                             set(range(saved + 2)))


if __name__ == "__main__":
    unittest.main()
