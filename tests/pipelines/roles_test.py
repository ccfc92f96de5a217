"""A run on ranks that sample and ranks that train gives what a run on one process does, byte for byte."""

import json
import shutil
import unittest

from pipeline_case import DONE, ROOT, SLOTS, RanksCase, run, sets, with_roles

class Roles(RanksCase):
    def run_apart(self, pipeline, name="apart", training=2, sampling=2, **overrides):
        file, folder = self.folder / f"{name}-{pipeline}", self.folder / f"{name}-{pipeline}-run"
        file.write_text(with_roles(pipeline, training, sampling))
        result = run("launch", file, "--run-dir", folder, *sets(**SLOTS, **overrides), timeout=600)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return folder

    def assert_equal_apart(self, pipeline, apart=None, training=2, sampling=2, **overrides):
        alone = self.run_on(1, pipeline, **overrides)
        shared = self.run_apart(pipeline, training=training, sampling=sampling, **overrides | (apart or {}))
        self.assert_equal_runs(shared, alone)

    def test_ppo_and_grpo_at_each_lag(self):
        for pipeline in ("ppo.toml", "grpo.toml"):
            for lag in (None, 1, 2):
                with self.subTest(pipeline, lag=lag):
                    shutil.rmtree(self.folder, ignore_errors=True)
                    self.folder.mkdir()
                    self.assert_equal_apart(pipeline, **{"pipeline.iterations": 3, "schedule.policy_lag": lag})

    def test_lines_tell_of_the_weights_that_were_sampled_with(self):
        for lag in (0, 1):
            with self.subTest(lag=lag):
                folder = self.run_apart("ppo.toml", name=f"lag{lag}", **{"pipeline.iterations": 4, "schedule.policy_lag": lag})
                for line in (json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()):
                    told = {name for name in line if "/weights_" in name}
                    if line["policy_version"] == 0:
                        self.assertEqual(told, set())
                        continue
                    of_run = {"time/weights_seconds", "time/weights_gigabytes_per_second",
                              "time/weights_slowest_receiver_seconds", "engine/weights_bytes", "engine/weights_slowest_receiver"}
                    of_ranks = {f"time/weights_{what}{of}" for what in ("stall_seconds", "link_share")
                                for of in ("", "/min", "/max")}
                    self.assertEqual(told, of_run | of_ranks)
                    seconds = line["time/weights_seconds"]
                    self.assertGreater(seconds, 0)
                    self.assertAlmostEqual(line["time/weights_gigabytes_per_second"] * seconds * 1e9,
                                           line["engine/weights_bytes"], delta=1)
                    self.assertGreater(line["engine/weights_bytes"], 1e6)
                    self.assertIn(line["engine/weights_slowest_receiver"], (2, 3))
                    self.assertLessEqual(line["time/weights_slowest_receiver_seconds"], seconds)
                    self.assertGreaterEqual(line["time/weights_stall_seconds/min"], 0)
                    self.assertLessEqual(line["time/weights_stall_seconds/max"], seconds + 1e-6)
                    self.assertGreater(line["time/weights_link_share/min"], 0)
                    self.assertLessEqual(line["time/weights_link_share/max"], 1)

    def test_other_numbers_of_ranks(self):
        for training, sampling in ((1, 1), (1, 3), (4, 1)):
            with self.subTest(training=training, sampling=sampling):
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir()
                self.assert_equal_apart("ppo.toml", training=training, sampling=sampling, **{"pipeline.iterations": 2})

    def test_ranks_that_sample_do_so_together(self):
        """Groups of two with some heads each, of one rank or two that lead: with one and several versions, and passes that are
        shared too."""
        cases = (("ppo.toml", 1, 2, {}), ("grpo.toml", 2, 4, {"schedule.policy_lag": 1, "models.actor.dtype": "bfloat16"}),
                 ("calculator.toml", 1, 2, {"models.actor.lora.rank": 4}), ("ppo.toml", 2, 4, {"cluster.sequence_parallel": 2}))
        for pipeline, training, sampling, more in cases:
            with self.subTest(pipeline, training=training, **more):
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir()
                more = more | {"pipeline.iterations": 3}
                shares_passes = "cluster.sequence_parallel" in more  # which round otherwise than those of one rank
                apart = [self.run_apart(pipeline, f"apart-{ranks}", training, sampling, **more,
                                        **{"cluster.tensor_parallel": ranks}) for ranks in ((1, 2) if shares_passes else (2,))]
                self.assert_equal_runs(apart[-1], apart[0] if shares_passes else self.run_on(1, pipeline, **more))

    def test_replaced_groups_environments_and_baselines(self):
        for pipeline in ("dapo.toml", "calculator.toml", "remax.toml", "online_dpo.toml"):
            with self.subTest(pipeline):
                self.assert_equal_apart(pipeline, **{"pipeline.iterations": 2})

    def test_precisions_and_adapters(self):
        for number, extra in enumerate(({"models.actor.dtype": "bfloat16"}, {"models.actor.freeze": ["model.embed_tokens.*"]},
                                        {"models.actor.lora.rank": 4})):
            with self.subTest(**extra):
                shutil.rmtree(self.folder, ignore_errors=True)
                self.folder.mkdir()
                self.assert_equal_apart("grpo.toml", **{"pipeline.iterations": 3} | extra)

    def test_with_the_least_credit(self):
        long = {"pipeline.iterations": 2, "nodes.prompts.groups_per_iteration": 16, "nodes.generate.max_new_tokens": 40,
                "nodes.generate.ignore_end_of_sequence": True}  # so that credit on demand is taken away again
        plan = json.loads(run("plan", ROOT / "pipelines" / "grpo.toml", "--format", "json", *sets(**SLOTS, **long)).stdout)
        path = plan["paths"][0]
        least = {"cluster.roles.train.tokens_in_flight": path["tokens_needed"] + 256,
                 "cluster.roles.rollout.tokens_in_flight": path["group_tokens"] + 256}
        alone = self.run_on(1, "grpo.toml", **long)
        for admission in ("worst_case", "on_demand"):
            with self.subTest(admission):
                apart = self.run_apart("grpo.toml", admission, **long | least | {"budget.admission": admission})
                self.assert_equal_runs(apart, alone)
                preempted = sum(json.loads(line).get("engine/preempted_samples", 0)
                                for line in (apart / "metrics.jsonl").read_text().splitlines())
                self.assertEqual(preempted > 0, admission == "on_demand")

    def go_on_from(self, folder, iterations, *command):
        """As after a crash: with the checkpoint after so many iterations, and no later one."""
        for checkpoint in (folder / "checkpoints").iterdir():
            if int(checkpoint.name) > iterations:
                shutil.rmtree(checkpoint)
        result = run(*command, "--run-dir", folder, "--resume", "auto", *sets(**SLOTS, **self.settings))
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn("going on", result.stdout)

    def test_what_was_saved_goes_on_in_another_shape(self):
        """From roles to one process and back, with weights from before the checkpoint that samples still come from."""
        self.settings = {"pipeline.iterations": 5, "checkpoint.every_iterations": 2, "schedule.policy_lag": 2}
        alone = self.run_on(1, "ppo.toml", **self.settings)
        apart = self.run_apart("ppo.toml", **self.settings)
        self.assert_equal_runs(apart, alone)
        self.go_on_from(apart, 2, "run", ROOT / "pipelines" / "ppo.toml")
        self.assert_equal_runs(apart, alone)
        self.go_on_from(apart, 4, "launch", self.folder / "apart-ppo.toml")
        self.assert_equal_runs(apart, alone)
        self.go_on_from(apart, 4, "launch", self.folder / "apart-ppo.toml", "--set", "cluster.tensor_parallel=2")
        self.assert_equal_runs(apart, alone)


if __name__ == "__main__":
    unittest.main()
