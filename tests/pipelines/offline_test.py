"""The offline stages: each pipeline runs, and what should improve does."""

import json
import unittest

from pipeline_case import DONE, ROOT, PipelineCase, mean, run, sets

SHIPPED = ROOT / "pipelines/models/tiny-arithmetic"


class Offline(PipelineCase):
    def test_a_reward_model_tells_right_from_wrong_where_it_never_was(self):
        rows = self.metrics("reward_model.toml", "reward")
        checkpoint = str(self.folder / "reward/checkpoint/reward")
        valid = run("validate", ROOT / "pipelines/evaluate_reward.toml")
        self.assertNotIn("warning", valid.stdout + valid.stderr)  # a reward model is meant to be frozen
        before = self.metrics("evaluate_reward.toml", "before")[0]
        after = self.metrics("evaluate_reward.toml", "after", **{"models.reward.checkpoint": checkpoint})[0]
        print(f"reward model: accuracy on held-out pairs {before['reward/reward_accuracy']:.3f} -> {after['reward/reward_accuracy']:.3f}")
        self.assertAlmostEqual(before["reward/reward_accuracy"], 0.5)  # a value head of zeros
        self.assertGreater(after["reward/reward_accuracy"], 0.9)
        self.assertGreater(after["reward/reward_margin"], 1)
        self.assertLess(mean(rows[-20:], "reward_model/loss"), mean(rows[:3], "reward_model/loss") / 2)

    def test_dpo_makes_the_likeliest_answer_right(self):
        rows = self.metrics("dpo.toml", "dpo")
        before, after = self.accuracy(SHIPPED, "before"), self.accuracy(self.folder / "dpo/checkpoint/actor", "after")
        print(f"dpo: held-out accuracy {before:.3f} -> {after:.3f}")
        self.assertAlmostEqual(rows[0]["preference/reward_margin"], 0, places=3)  # the policy is the reference
        self.assertGreater(mean(rows[-20:], "preference/reward_margin"), 0.5)
        self.assertGreater(mean(rows[-20:], "preference/accuracy"), 0.9)
        self.assertGreater(after, before + 0.3)

    def test_sft_learns_what_the_assistant_says(self):
        rows = self.metrics("sft_chat.toml", "chat")
        self.assertGreater(mean(rows[:3], "policy/loss"), 4)
        self.assertLess(mean(rows[-10:], "policy/loss"), 0.5)
        # Which of them are right depends on the last bits, so on the machine; by chance it would be one in a hundred.
        answers = {n: run("model", "sample", self.folder / "chat/checkpoint/policy", "--chat", "--temperature", "0", "--prompt", f"after {n}?")
                   for n in range(20, 60, 2)}
        right = sum(done.stdout.strip() == str(n + 1) for n, done in answers.items())
        print(f"sft_chat: {right} of {len(answers)} answers right")
        self.assertGreaterEqual(right, 4, {n: done.stdout + done.stderr for n, done in answers.items()})

    def test_other_preference_objectives_widen_the_margin_too(self):
        for objective in ('"ipo"', '"hinge"', '"simpo"', '{ type = "dpo", label_smoothing = 0.1 }'):
            with self.subTest(objective):
                name = "".join(filter(str.isalpha, objective))
                rows = self.metrics("dpo.toml", name, **{"nodes.train.objective": objective, "pipeline.iterations": 40})
                self.assertGreater(mean(rows[-5:], "preference/reward_margin"), mean(rows[:2], "preference/reward_margin"))
                self.assertGreater(mean(rows[-5:], "preference/accuracy"), 0.7)

    def test_kto_makes_the_likeliest_answer_right(self):
        rows = self.metrics("kto.toml", "kto")
        before, after = self.accuracy(SHIPPED, "before-kto"), self.accuracy(self.folder / "kto/checkpoint/actor", "after-kto")
        print(f"kto: held-out accuracy {before:.3f} -> {after:.3f}")
        self.assertGreater(after, before + 0.2)
        self.assertAlmostEqual(rows[0]["policy/loss"], 0.5, places=6)  # the policy is its reference
        self.assertGreater(mean(rows[-10:], "preference/accuracy"), 0.8)
        self.assertGreater(mean(rows[-10:], "preference/desirable_reward_mean"), mean(rows[-10:], "preference/undesirable_reward_mean") + 1)

    def test_online_dpo_raises_the_score(self):
        rows = self.metrics("online_dpo.toml", "online")
        first, last = mean(rows[:3], "reward/score_mean"), mean(rows[-10:], "reward/score_mean")
        print(f"online dpo: {first:.3f} -> {last:.3f}")
        self.assertGreater(last, first + 0.25)
        for row in rows:
            self.assertEqual(row["preference/pairs"] + row["preference/groups_without_pair"], row["data/groups"])

    def test_rejection_sampling_raises_the_score(self):
        rows = self.metrics("rejection_sampling.toml", "rejection")
        first, last = mean(rows[:3], "reward/score_mean"), mean(rows[-10:], "reward/score_mean")
        print(f"rejection sampling: {first:.3f} -> {last:.3f}")
        self.assertGreater(last, first + 0.2)

    def test_best_of_n_writes_what_sft_and_dpo_read(self):
        small = {"pipeline.iterations": 2}
        written = [row["data/rows_written"] for row in self.metrics("best_of_n.toml", "best", **small)]
        best = self.rows_of("best/dataset.jsonl")
        self.assertEqual(len(best), sum(written))
        self.assertEqual(len({row["prompt"] for row in best}), len(best))  # one of each prompt
        self.assertGreater(len(best), 64)
        for row in best:
            self.assertEqual(eval(row["prompt"].rstrip("=")), int(row["completion"]))  # a sum
        self.metrics("sft.toml", "of-best", **{"pipeline.iterations": 1, "nodes.examples.path": str(self.folder / "best/dataset.jsonl")})

        self.metrics("best_of_n.toml", "pairs", **small, **{"nodes.best": False, "nodes.dataset.inputs": '["score"]',
                                                            "nodes.dataset.form": "pairs"})
        for row in self.rows_of("pairs/dataset.jsonl"):
            self.assertEqual((row["chosen_score"], row["rejected_score"]), (1, 0))
        first = self.metrics("dpo.toml", "of-pairs", **{"pipeline.iterations": 1, "nodes.pairs.max_tokens": 16,
                                                        "nodes.pairs.path": str(self.folder / "pairs/dataset.jsonl")})[0]
        self.assertEqual(first["preference/pairs"], 64)

    # With the prompt itself for a context it is what logprobs says; with more in it, the plan has room for that.
    def test_a_teacher_may_have_more_in_its_prompt(self):
        def in_context(context, max_tokens):
            return {"nodes.teacher.type": "logprobs_in_context", "nodes.teacher.context": json.dumps(context),
                    "nodes.teacher.max_tokens": max_tokens}

        small = {"pipeline.iterations": 2, "nodes.prompts.groups_per_iteration": 32}
        rows = {name: self.metrics("distill.toml", name, **small, **more)
                for name, more in (("alone", {}), ("alike", in_context("{question}", 14)), ("more", in_context("{label}+0={question}", 64)))}
        told = [[{key: value for key, value in row.items() if not key.startswith(("time/", "memory/", "engine/"))} for row in rows[name]]
                for name in ("alone", "alike", "more")]
        self.assertEqual(told[0], told[1])
        self.assertNotEqual(told[0][0]["reference/teacher_kl_mean"], told[2][0]["reference/teacher_kl_mean"])

        def activations(max_tokens):
            plan = run("plan", ROOT / "pipelines/distill.toml", "--format", "json", *sets(**in_context("{label}", max_tokens), **{"nodes.teacher.on": "cpu:2"}))
            self.assertEqual(plan.returncode, DONE, plan.stderr)
            return json.loads(plan.stdout)["predicted"]["activation_bytes"]

        self.assertEqual(activations(14), activations(12))
        self.assertGreater(activations(64), activations(14))

    def test_samples_of_the_shipped_model_are_better_together(self):
        row = self.metrics("evaluate_samples.toml", "samples")[0]
        print(", ".join(f"{key} {value:.3f}" for key, value in row.items() if "_at_" in key))
        self.assertAlmostEqual(row["reward/pass_at_1"], row["reward/score_mean"], places=6)
        self.assertAlmostEqual(row["reward/maj_at_1"], row["reward/pass_at_1"], places=6)
        self.assertGreater(row["reward/pass_at_4"], row["reward/pass_at_1"] + 0.2)
        self.assertGreater(row["reward/pass_at_8"], row["reward/pass_at_4"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
