"""Ranks of a role of their own compute the passes of frozen models: a run gives what one process gives, byte for byte."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import unittest

from pipeline_case import DONE, ROOT, SLOTS, RanksCase, run, sets, start, wait_for, with_roles

REFERENCE = {"score": (1, ["reference"])}


class ForwardRoles(RanksCase):
    def file_of(self, pipeline, name="apart", forward=None, **roles):
        file = self.folder / f"{name}-{pathlib.PurePath(pipeline).name}"
        file.write_text(with_roles(pipeline, forward=REFERENCE if forward is None else forward, **roles))
        return file

    def launch(self, file, *options, **overrides):
        folder = file.with_suffix("")
        result = run("launch", file, "--run-dir", folder, *options, *sets(**{**SLOTS, **overrides}), timeout=600)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return folder

    def test_with_and_without_a_role_that_samples(self):
        lags = {"schedule.policy_lag": 1, "models.reference.dtype": "bfloat16"}
        cases = (("grpo.toml", {"training": 2, "sampling": 1}, lags, 1),
                 ("ppo.toml", {"training": 1, "sampling": 1}, {}, 2),       # one rank asks two
                 ("online_dpo.toml", {"training": 2, "sampling": 0}, {}, 1),  # one role trains and samples
                 ("dpo.toml", {"training": 2, "sampling": 0}, {}, 1))       # and nothing is sampled
        for pipeline, roles, more, ranks in cases:
            with self.subTest(pipeline):
                more = more | {"pipeline.iterations": 3}
                apart = self.launch(self.file_of(pipeline, forward={"score": (ranks, ["reference"])}, **roles), **more)
                self.assert_equal_runs(apart, self.run_on(1, pipeline, **more))

    def test_beside_passes_that_ranks_share_and_weights_that_they_have_in_common(self):
        for name, training, more in (("sequence", 2, {"cluster.sequence_parallel": 2}),
                                     ("parameters", 2, {"cluster.shard": "parameters"})):
            with self.subTest(name):
                more = more | {"pipeline.iterations": 2}
                apart = self.launch(self.file_of("grpo.toml", name, training=training, sampling=1), **more)
                without = self.launch(self.file_of("grpo.toml", name + "-without", forward={}, training=training, sampling=1),
                                      **more)
                self.assert_equal_runs(apart, without)

    def test_two_roles_one_of_which_judges(self):
        """A reward model beside exact matches; it is asked while the reference is, too."""
        plain = self.folder / "judged.toml"
        plain.write_text(f'''extends = "{ROOT / "pipelines/grpo.toml"}"
[models.judge]
checkpoint = "{ROOT / "pipelines/models/tiny-arithmetic"}"
head = "value"
[nodes.score]
writes = "exact"
[nodes.judgement]
type = "reward_model"
inputs = ["generate"]
model = "judge"
writes = "judged"
[nodes.both]
type = "combine_scores"
inputs = ["score", "judgement"]
scores = ["exact", "judged"]
weights = [1, 0.01]
[nodes.advantages]
inputs = ["both"]
''')
        more = {"pipeline.iterations": 2}
        file = self.file_of(plain, forward={"score": (1, ["reference"]), "judges": (2, ["judgement"])}, training=1, sampling=1)
        self.assert_equal_runs(self.launch(file, **more), self.run_on(1, plain, **more))
        plan = json.loads(run("plan", file, "--format", "json", *sets(**SLOTS, **more)).stdout)
        self.assertEqual([role["name"] for role in plan["cluster"]["roles"]], ["train", "rollout", "score", "judges"])
        self.assertEqual({passes["node"] for passes in plan["cluster"]["between_roles"]["passes"]}, {"reference", "judgement"})

    def test_what_was_saved_goes_on_in_another_shape(self):
        more = {"pipeline.iterations": 4, "checkpoint.every_iterations": 2}
        alone = self.run_on(1, "grpo.toml", **more)
        file = self.file_of("grpo.toml", training=1, sampling=1)
        apart = self.launch(file, **more)
        there = ("--run-dir", apart, "--resume", "auto", *sets(**SLOTS, **more))
        for command in (("run", ROOT / "pipelines/grpo.toml", *there), ("launch", file, *there), ("resume", apart)):
            for checkpoint in (apart / "checkpoints").iterdir():
                if int(checkpoint.name) > 2:
                    shutil.rmtree(checkpoint)
            result = run(*command)
            self.assertEqual(result.returncode, DONE, result.stderr)
            self.assert_equal_runs(apart, alone)

    def launched(self):
        """A run on one rank of each role that goes on; the processes of its ranks."""
        folder = self.folder / "launched"
        more = {"pipeline.iterations": 400, "checkpoint.every_iterations": 2, "cluster.dead_after_seconds": 3}
        process = start("launch", str(self.file_of("grpo.toml", training=1, sampling=1)), "--run-dir", str(folder), text=True,
                        *sets(**more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for("a checkpoint", lambda: (folder / "checkpoint").exists(), seconds=120)
        ranks = subprocess.run(["pgrep", "-P", str(process.pid)], capture_output=True, text=True).stdout.split()
        return process, folder, [int(rank) for rank in ranks]

    def test_a_lost_rank_is_named_by_all_others(self):
        process, folder, ranks = self.launched()
        wait_for("its sign", lambda: "computing passes for rank 0" in run("top", folder, "--once").stdout, seconds=60)
        os.kill(ranks[2], signal.SIGKILL)
        out, said = process.communicate(timeout=60)
        self.assertNotEqual(process.returncode, DONE, out)
        self.assertRegex(said, rf"rank 2 \(host .*, pid {ranks[2]}\)")

    def test_an_interrupt_ends_and_saves_the_run_whoever_gets_it(self):
        process, folder, ranks = self.launched()
        os.kill(ranks[2], signal.SIGTERM)
        out, said = process.communicate(timeout=60)
        self.assertIn("grpo interrupted: ", out, said)
        saved = int(json.loads((folder / "checkpoint" / "manifest.json").read_text())["iterations"])
        self.assertEqual(len((folder / "metrics.jsonl").read_text().splitlines()), saved)


if __name__ == "__main__":
    unittest.main()
