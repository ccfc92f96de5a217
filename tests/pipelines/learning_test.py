"""The pipelines that train a policy on sums: it learns them, also those that were never practised."""

import unittest

from pipeline_case import PipelineCase


class Learning(PipelineCase):
    def assert_learns_to_add(self, pipeline, name, figure="reward/score_mean", **overrides):
        """The share of right answers rises, also on sums that were never practised; the rows of metrics.jsonl. In fewer
        iterations than the pipelines have: at their ends it is 0.97."""
        rows = self.metrics(pipeline, name, **{"pipeline.iterations": 60} | overrides)
        scores = [row[figure] for row in rows]
        first, last = sum(scores[:3]) / 3, sum(scores[-10:]) / 10
        held_out = self.accuracy(self.folder / name / "checkpoint/actor", f"{name}-held-out")
        print(f"{name}: {first:.3f} -> {last:.3f}, held out {held_out:.3f}")
        self.assertGreaterEqual(last, 0.90)
        self.assertGreaterEqual(last - first, 0.30)
        self.assertGreaterEqual(held_out, 0.90)
        return rows

    # bench/learning.py runs more seeds.
    def test_ppo_learns_to_add(self):
        self.assert_learns_to_add("ppo.toml", "ppo", **{"pipeline.seed": 4})

    def test_group_relative_pipelines_learn_to_add_without_a_critic(self):
        for name in ("grpo", "rloo", "reinforce_pp", "remax"):
            with self.subTest(name):
                self.assert_learns_to_add(f"{name}.toml", name)

    def test_dapo_learns_to_add_from_groups_that_teach_something(self):
        rows = self.assert_learns_to_add("dapo.toml", "dapo", figure="reward/correct_mean")
        self.assertGreater(sum(row["filter/useful/groups_dropped"] for row in rows), 0)

    def test_gdpo_raises_the_score_that_is_not_met_yet(self):
        rows = self.metrics("gdpo.toml", "gdpo", **{"pipeline.iterations": 20, "nodes.held_out": False,
                                                    "nodes.held_out_answers": False, "nodes.held_out_score": False})
        self.assertGreater(sum(row["reward/correct_mean"] for row in rows[-5:]) / 5,
                           sum(row["reward/correct_mean"] for row in rows[:5]) / 5 + 0.05)
        self.assertTrue(all(row["advantage/correct_abs_mean"] > row["advantage/length_score_abs_mean"] for row in rows))

    def test_gspo_learns_to_add_though_whole_samples_are_clipped(self):
        rows = self.assert_learns_to_add("gspo.toml", "gspo")
        self.assertGreater(sum(row["policy/clip_fraction_low"] + row["policy/clip_fraction_high"] for row in rows), 0)

    def test_samples_of_older_weights_teach_as_much_with_the_correction(self):
        rows = self.assert_learns_to_add("grpo.toml", "lagging", **{
            "schedule.policy_lag": 2, "nodes.train.recompute_old_logprobs": True, "nodes.train.objective.correction": "truncate"})
        self.assertEqual([row["policy_lag"] for row in rows[:4]], [0, 1, 2, 2])
        self.assertGreater(rows[-1]["policy/importance_weight_max"], 1.0)
        self.assertLess(rows[-1]["policy/effective_sample_size"], 1.0)

    def test_distillation_brings_the_policy_to_its_teacher(self):
        rows = self.assert_learns_to_add("distill.toml", "distill")
        self.assertLess(sum(row["reference/teacher_kl_mean"] for row in rows[-5:]),
                        sum(row["reference/teacher_kl_mean"] for row in rows[:5]) / 2)

    def test_policy_objectives_without_a_pipeline_of_their_own_learn_too(self):
        for name in ("cispo", "sapo"):
            with self.subTest(name):
                rows = self.metrics("grpo.toml", name, **{"pipeline.iterations": 40, "nodes.train.mini_batches": 2,
                                                          "nodes.train.objective": f'{{ type = "{name}" }}'})
                self.assertGreater(sum(row["reward/score_mean"] for row in rows[-5:]) / 5,
                                   sum(row["reward/score_mean"] for row in rows[:5]) / 5 + 0.2)


if __name__ == "__main__":
    unittest.main(verbosity=2)
