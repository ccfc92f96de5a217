"""A run on several ranks: what ends it, what it says then, and how it goes on."""

import contextlib
import os
import pathlib
import random
import shutil
import signal
import socket
import subprocess
import unittest

from support import DONE, FAILED, PPO, ROOT, WRONG_PIPELINE, Case, run, sets, start, wait_for, wait_for_iteration

LONG = {"pipeline.iterations": 400, "cluster.slots": 4, "checkpoint.every_iterations": 5, "nodes.prompts.groups_per_iteration": 8,
        "cluster.dead_after_seconds": 2}
PLUGINS = pathlib.Path(os.environ.get("SLUICE_TEST_PLUGINS", str(ROOT / "build/release/tests/plugins")))


def children_of(pid):
    return [int(child) for child in subprocess.run(["pgrep", "-P", str(pid)], capture_output=True, text=True).stdout.split()]


def rank_of(pid):
    words = dict(word.split("=", 1) for word in pathlib.Path(f"/proc/{pid}/environ").read_text().split("\0") if "=" in word)
    return int(words["RANK"])


def free_port():
    """Below those that a connection may take before somebody listens there."""
    while True:
        with socket.socket() as one, contextlib.suppress(OSError):
            one.bind(("127.0.0.1", random.randrange(10_000, 32_000)))
            return one.getsockname()[1]


def is_served(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


def ended(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):  # before it is opened, or read
        return True


class Ranks(Case):
    def launch(self, ranks=2, name="run", **overrides):
        return start("launch", "--ranks", str(ranks), PPO, "--run-dir", str(self.folder / name), *sets(**{**LONG, **overrides}),
                     stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def ranks_of(self, launched, ranks=2):
        wait_for("the ranks", lambda: len(children_of(launched.pid)) == ranks)
        wait_for("their names", lambda: all(os.path.basename(os.readlink(f"/proc/{pid}/exe")) == "rlhf-run"
                                            for pid in children_of(launched.pid)))
        return {rank_of(pid): pid for pid in children_of(launched.pid)}

    def assert_ends_and_names(self, launched, lost, pid):
        out, said = launched.communicate(timeout=60)
        self.assertNotEqual(launched.returncode, DONE, out + said)
        self.assertRegex(said, rf"rank {lost} \(host .*, pid {pid}\)")
        self.assertIn("last checkpoint", said)
        self.assertIn("rlhf-run launch --ranks 2", said)

    def test_a_rank_that_is_killed_is_named_and_the_run_goes_on(self):
        whole = run("launch", "--ranks", 2, PPO, "--run-dir", self.folder / "whole", *sets(**{**LONG, "pipeline.iterations": 12}))
        self.assertEqual(whole.returncode, DONE, whole.stderr)
        for lost in (1, 0):
            with self.subTest(lost):
                name = f"killed-{lost}"
                launched = self.launch(name=name)
                pids = self.ranks_of(launched)
                wait_for("a checkpoint", lambda: (self.folder / name / "checkpoint").exists())
                os.kill(pids[lost], signal.SIGKILL)
                self.assert_ends_and_names(launched, lost, pids[lost])
                self.assertTrue(all(ended(pid) for pid in pids.values()))
                for ranks in (2, 1):
                    iterations = {2: 12, 1: 12}[ranks]
                    done = run("launch", "--ranks", ranks, PPO, "--run-dir", self.folder / name, "--resume", "auto",
                               *sets(**{**LONG, "pipeline.iterations": iterations}))
                    self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertEqual(self.lines_of(name)[:12], self.lines_of("whole"))

    def test_a_rank_that_is_stopped_is_named(self):
        launched = self.launch()
        pids = self.ranks_of(launched)
        wait_for("a checkpoint", lambda: (self.folder / "run/checkpoint").exists())
        os.kill(pids[1], signal.SIGSTOP)
        self.assert_ends_and_names(launched, 1, pids[1])
        self.assertTrue(all(ended(pid) for pid in pids.values()))

    def test_ctrl_c_at_one_rank_ends_all_behind_the_same_iteration(self):
        launched = self.launch()
        pids = self.ranks_of(launched)
        wait_for_iteration(self.folder / "run")
        os.kill(pids[1], signal.SIGINT)
        out, said = launched.communicate(timeout=60)
        self.assertEqual(launched.returncode, 130, out + said)
        saved = int((self.folder / "run/checkpoint").resolve().name)
        self.assertEqual(len(self.lines_of("run")), saved)

    def test_a_signal_to_a_rank_that_only_computes_passes_ends_all(self):
        launched = self.launch(ranks=4, **{"cluster.sequence_parallel": 2, "cluster.dead_after_seconds": 30})
        pids = self.ranks_of(launched, ranks=4)
        wait_for_iteration(self.folder / "run")
        os.kill(pids[3], signal.SIGTERM)
        out, said = launched.communicate(timeout=60)
        self.assertIn(launched.returncode, (130, 143), out + said)
        saved = int((self.folder / "run/checkpoint").resolve().name)
        self.assertEqual(len(self.lines_of("run")), saved)
        self.assertLess(saved, LONG["pipeline.iterations"])

    def test_a_failure_of_a_node_is_told_by_all(self):
        launched = self.launch(**{"models.actor.optimizer.learning_rate": 1e30})
        out, said = launched.communicate(timeout=120)
        self.assertEqual(launched.returncode, FAILED, out + said)
        self.assertIn("not finite", said)

    def in_world(self, rank, pipeline=PPO, before=(), keys=(), **environment):
        world = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "LOCAL_WORLD_SIZE": "2",
                 "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(self.port), **environment}
        return start("run", pipeline, "--run-dir", self.folder / "run", *sets(**{**LONG, **dict(keys)}), before=before,
                     env={**os.environ, **world}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)

    def test_ranks_with_other_pipelines_are_told_which_key(self):
        """Those too that a run may change when it goes on."""
        stop = '{ metric = "reward/score_mean", at_least = 0.9 }'
        for key, value in (("pipeline.seed", 77), ("pipeline.iterations", 3), ("pipeline.stop_when", stop),
                           ("budget.tokens_in_flight", 9000), ("cluster.dead_after_seconds", 7)):
            with self.subTest(key):
                self.port = free_port()
                both = [self.in_world(0), self.in_world(1, keys={key: value})]
                for one in both:
                    _, said = one.communicate(timeout=60)
                    self.assertNotEqual(one.returncode, DONE)
                    self.assertRegex(said, r"ranks 0 and 1 differ in \[" + key.replace(".", r"\] ") + ": ")

    def test_ranks_whose_libtorch_rounds_in_another_way_are_told_so(self):
        self.port = free_port()
        for one in [self.in_world(0), self.in_world(1, ATEN_CPU_CAPABILITY="default")]:
            _, said = one.communicate(timeout=60)
            self.assertNotEqual(one.returncode, DONE)
            self.assertRegex(said, r"ranks 0 and 1 differ in LibTorch's vector instructions \(ATEN_CPU_CAPABILITY\): .*DEFAULT")
            self.assertIn("start all ranks with the same program, environment", said)

    def test_what_a_rank_may_have_of_its_own(self):
        self.port = free_port()
        few = {"pipeline.iterations": 2}
        both = [self.in_world(0, keys=few), self.in_world(1, keys={**few, "runtime.stall_seconds": 300,
                                                                   "runtime.grace_seconds": 3, "checkpoint.every_iterations": 7})]
        for one in both:
            _, said = one.communicate(timeout=120)
            self.assertEqual(one.returncode, DONE, said)

    def assert_told_of_difference(self, pipeline, place, other, what):
        """Where rank 1 has the other one in that place."""
        self.port = free_port()
        mounted = ("bwrap", "--dev-bind", "/", "/", "--bind", str(other), str(place))
        for one in [self.in_world(0, pipeline), self.in_world(1, pipeline, before=mounted)]:
            _, said = one.communicate(timeout=60)
            self.assertNotEqual(one.returncode, DONE)
            self.assertRegex(said, f"ranks 0 and 1 differ in {what}: ")

    def test_ranks_with_other_weights_under_one_path_are_told_of_which_model(self):
        model = self.folder / "model"
        shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", model)
        other = self.folder / "other"
        shutil.copytree(model, other)
        with open(other / "model.safetensors", "r+b") as weights:
            weights.seek(-8, os.SEEK_END)
            weights.write(b"\0" * 8)
        pipeline = self.write("p.toml", f'extends = "{PPO}"\n[models.actor]\ncheckpoint = "{model}"\n')
        self.assert_told_of_difference(pipeline, model, other, r"the files of model 'actor'")

    def test_ranks_with_other_data_under_one_path_are_told_of_which_node(self):
        data, other = (self.write("data.jsonl", '{"prompt": "1+1=", "label": "2"}\n' * 64),
                       self.write("other.jsonl", '{"prompt": "1+1=", "label": "3"}\n' * 64))
        pipeline = self.write("p.toml", f'extends = "{PPO}"\n[nodes.prompts]\npath = "{data}"\n')
        self.assert_told_of_difference(pipeline, data, other, r"path of \[nodes\.prompts\] \(.*data\.jsonl\)")

    def test_ranks_with_other_plugins_under_one_path_are_told_of_which(self):
        plugin, other = self.folder / "libfaults.so", self.folder / "other.so"
        shutil.copy(PLUGINS / "libfaults.so", plugin)
        other.write_bytes(plugin.read_bytes() + b"built again")
        pipeline = self.write("p.toml", f'extends = "{PPO}"\nplugins = ["libfaults.so"]\n')
        self.assert_told_of_difference(pipeline, plugin, other, r"plugin libfaults\.so")

    def test_a_rank_that_waits_for_the_others_outlives_its_terminal(self):
        self.port = free_port()
        waits = self.in_world(0)
        wait_for("its store", lambda: is_served(self.port))
        for number in (signal.SIGHUP, signal.SIGUSR1):
            waits.send_signal(number)
        comes = self.in_world(1, keys={"pipeline.seed": 77})  # refused, but it was waited for
        for one in (waits, comes):
            _, said = one.communicate(timeout=60)
            self.assertIn("ranks 0 and 1 differ in [pipeline] seed", said)

    def test_a_rank_that_finds_nobody_says_so(self):
        port = free_port()
        alone = start("run", str(PPO), *sets(**{"cluster.join_seconds": 2}), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                      text=True, env={**os.environ, "RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "2",
                                      "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)})
        _, said = alone.communicate(timeout=60)
        self.assertNotEqual(alone.returncode, DONE)
        self.assertIn(f"127.0.0.1:{port}", said)

    def test_a_half_set_environment_is_refused(self):
        done = run("run", PPO, env={**os.environ, "WORLD_SIZE": "4"})
        self.assert_refused(done, "WORLD_SIZE is 4, but RANK is not set", code=WRONG_PIPELINE)


if __name__ == "__main__":
    unittest.main()
