"""A run on two ranks gives what a run on one does, byte for byte: the lines of metrics.jsonl without what depends on timing, and
the models."""

import json
import unittest

from pipeline_case import ROOT, ROUTES, SLOTS, RanksCase, few_groups, run, sets


class Ranks(RanksCase):
    def assert_equal_on_ranks(self, pipeline, **overrides):
        alone, shared = (self.run_on(ranks, pipeline, **overrides) for ranks in (1, 2))
        self.assert_equal_runs(shared, alone)
        return shared

    def test_the_cores_of_a_rank_change_nothing(self):
        few, many = (self.run_on(1, "grpo.toml", name, **{"pipeline.iterations": 3, "runtime.cores": cores})
                     for name, cores in (("few", 2), ("many", 5)))
        self.assertEqual(self.lines_of(few), self.lines_of(many))
        self.assertEqual(self.models_of(few), self.models_of(many))

    def test_every_pipeline(self):
        """All algorithms, filters that have groups replaced, environments, offline data, evaluation."""
        for path in sorted((ROOT / "pipelines").glob("*.toml")):
            with self.subTest(path.name):
                self.assert_equal_on_ranks(path.name, **few_groups(path))

    def test_a_mixture_of_experts_with_a_loss_of_its_routers(self):
        shared = self.assert_equal_on_ranks("../tests/pipelines/grpo_experts.toml", **{
            "pipeline.iterations": 3, "models.actor.checkpoint": str(self.mixture()), "models.actor.router_aux_loss": 0.01,
            "schedule.policy_lag": 1, "nodes.train.on_policy": "measured", **ROUTES})
        self.assertEqual([row["router/rerouted"] > 0 for row in self.lines_of(shared)], [False, True, True])  # of older weights
        for row in self.lines_of(shared):
            self.assertGreaterEqual(row["router/load_max_worst_layer"], row["router/load_max"])
            self.assertGreater(row["router/load_max"], 1)

    def test_objectives_that_look_at_the_whole_step(self):
        """What is found in a step, and drawn in it, is the same whoever has its samples."""
        for objective, chosen in (('{type="m2po", m2_threshold=1e-4}', "policy/m2_masked"),
                                  ('{type="kl_cov", cov_share=0.01}', "policy/cov_chosen"),
                                  ('{type="clip_cov", cov_share=0.01, cov_low=0.01}', "policy/cov_chosen")):
            with self.subTest(objective):
                steps = {"pipeline.iterations": 2, "nodes.train.mini_batches": 2, "nodes.train.epochs": 2,
                         "nodes.train.objective": objective}
                alone, shared = (self.run_on(ranks, "grpo.toml", objective[7:11], **steps) for ranks in (1, 2))
                self.assert_equal_runs(shared, alone)
                self.assertTrue(any(row[chosen] > 0 for row in self.lines_of(shared)))

    def test_with_little_credit(self):
        """Ranks make groups for each other: whoever makes them, in whatever order."""
        held_out = {"grpo.toml": 256, "dapo.toml": 256, "ppo.toml": 256, "calculator.toml": 0}
        for name, share in held_out.items():
            with self.subTest(name):
                plan = json.loads(run("plan", ROOT / "pipelines" / name, "--ranks", 1, "--format", "json", *sets(**SLOTS)).stdout)
                least = plan["paths"][0]["tokens_needed"] + share
                shared = self.assert_equal_on_ranks(name, **{"pipeline.iterations": 2, "budget.tokens_in_flight": least})
                self.assertIn('"engine/groups_made_for_others"', (shared / "metrics.jsonl").read_text())

    def test_without_a_shared_optimizer(self):
        self.assert_equal_on_ranks("ppo.toml", **{"pipeline.iterations": 3, "cluster.shard": "none"})

    def test_gradients_of_several_buckets(self):
        """50 MB of them: ranks add some up while the backward still computes others."""
        large = self.random("policy", hidden_size=512, head_dim=128, intermediate_size=1536, num_hidden_layers=4)
        self.assert_equal_on_ranks("sft.toml", **large, **{"pipeline.iterations": 2, "checkpoint.copy": "none",
                                                           "nodes.examples.groups_per_iteration": 16})

    def test_the_lines_of_all_ranks_are_in_one_file(self):
        alone, shared = (self.run_on(ranks, "evaluate.toml", **{"nodes.prompts.groups_per_iteration": 40}) for ranks in (1, 2))
        lines = [(folder / "samples.jsonl").read_text() for folder in (alone, shared)]
        self.assertEqual(len(lines[0].splitlines()), 40)
        self.assertEqual(lines[0], lines[1])


if __name__ == "__main__":
    unittest.main()
