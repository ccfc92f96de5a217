"""The offline stages: each pipeline runs, and what should improve does."""

import json
import struct
import unittest

from pipeline_case import DONE, ROOT, PipelineCase, mean, repeatable, run, sets
from support import read_safetensors

SHIPPED = ROOT / "pipelines/models/tiny-arithmetic"


class Offline(PipelineCase):
    def test_a_reward_model_tells_right_from_wrong_where_it_never_was(self):
        rows = self.metrics("reward_model.toml", "reward")
        checkpoint = str(self.folder / "reward/checkpoint/reward")
        valid = run("validate", ROOT / "pipelines/evaluate_reward.toml")
        self.assertNotIn("warning", valid.stdout + valid.stderr)  # a reward model is meant to be frozen
        before = self.metrics("evaluate_reward.toml", "before")[0]
        after = self.metrics("evaluate_reward.toml", "after", **{"models.reward.checkpoint": checkpoint})[0]
        print(f"reward model: accuracy on held-out pairs {before['reward/reward_accuracy']:.3f} -> "
              f"{after['reward/reward_accuracy']:.3f}")
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
        answers = {n: run("model", "sample", self.folder / "chat/checkpoint/policy", "--chat", "--temperature", "0", "--prompt",
                          f"after {n}?") for n in range(20, 60, 2)}
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
        self.assertGreater(mean(rows[-10:], "preference/desirable_reward_mean"),
                           mean(rows[-10:], "preference/undesirable_reward_mean") + 1)

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
        self.metrics("sft.toml", "of-best",
                     **{"pipeline.iterations": 1, "nodes.examples.path": str(self.folder / "best/dataset.jsonl")})

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
        rows = {name: self.metrics("distill.toml", name, **small, **more) for name, more in
                (("alone", {}), ("alike", in_context("{question}", 14)), ("more", in_context("{label}+0={question}", 64)))}
        told = [[{key: value for key, value in row.items() if not key.startswith(("time/", "memory/", "engine/"))}
                 for row in rows[name]] for name in ("alone", "alike", "more")]
        self.assertEqual(told[0], told[1])
        self.assertNotEqual(told[0][0]["reference/teacher_kl_mean"], told[2][0]["reference/teacher_kl_mean"])

        def activations(max_tokens):
            plan = run("plan", ROOT / "pipelines/distill.toml", "--format", "json",
                       *sets(**in_context("{label}", max_tokens), **{"nodes.teacher.on": "cpu:2"}))
            self.assertEqual(plan.returncode, DONE, plan.stderr)
            return json.loads(plan.stdout)["predicted"]["activation_bytes"]

        self.assertEqual(activations(14), activations(12))
        self.assertGreater(activations(64), activations(14))

    def test_dpo_against_a_reference_that_follows_makes_the_likeliest_answer_right(self):
        rows = self.metrics("tr_dpo.toml", "tr_dpo")
        before, after = self.accuracy(SHIPPED, "before-tr"), self.accuracy(self.folder / "tr_dpo/checkpoint/actor", "after-tr")
        print(f"tr_dpo: held-out accuracy {before:.3f} -> {after:.3f}")
        self.assertGreater(mean(rows[-20:], "preference/accuracy"), 0.8)
        self.assertGreater(after, before + 0.3)

    def floats_of(self, model):
        """{tensor: floats} of a model's folder."""
        return {name: struct.unpack(f"<{len(content) // 4}f", content)
                for name, (_, _, content) in read_safetensors(model / "model.safetensors").items()}

    def assert_average(self, run_folder, iterations, decay, every):
        """What checkpoints have of the average is a loop over what they have of the actor."""
        expected = self.floats_of(SHIPPED)
        for iteration in range(1, iterations + 1):
            checkpoint = run_folder / "checkpoints" / str(iteration)
            if iteration % every == 0:
                actor = self.floats_of(checkpoint / "actor")
                expected = {name: [decay * a + (1 - decay) * b for a, b in zip(values, actor[name])]
                            for name, values in expected.items()}
            average = self.floats_of(checkpoint / "average")
            self.assertEqual(sorted(average), sorted(expected))
            for name, values in expected.items():
                self.assertLess(max(abs(a - b) for a, b in zip(values, average[name])), 1e-6, f"{checkpoint}: {name}")

    # One optimizer step an iteration. A run saves its last iteration: so each is saved that a run goes on from.
    def test_a_moving_average_is_the_loop_over_saved_weights_and_goes_on(self):
        of = {"models.average.ema.every_steps": 2, "models.average.ema.decay": 0.7, "checkpoint.keep_last": 0}
        whole = self.metrics("tr_dpo.toml", "whole", **of, **{"pipeline.iterations": 5})
        self.metrics("tr_dpo.toml", "parts", **of, **{"pipeline.iterations": 1})
        for iterations in range(2, 6):
            done = run("resume", self.folder / "parts", *sets(**{"pipeline.iterations": iterations}))
            self.assertEqual(done.returncode, DONE, done.stderr)
        self.assert_average(self.folder / "parts", 5, decay=0.7, every=2)
        self.assertEqual(repeatable(self.rows_of("parts/metrics.jsonl")), repeatable(whole))
        for file in ("average/model.safetensors", "average.average.safetensors", "actor/model.safetensors"):
            self.assertEqual(*((self.folder / name / "checkpoint" / file).read_bytes() for name in ("parts", "whole")), file)
        self.metrics("evaluate.toml", "of-average", **{"models.policy.checkpoint": str(self.folder / "whole/checkpoint/average")})

        for changed in ({"models.average.ema.decay": 0.6}, {"models.average.ema.every_steps": 3}):
            self.assertNotEqual(run("resume", self.folder / "parts", *sets(**{"pipeline.iterations": 6}, **changed)).returncode,
                                DONE)

    # Without decay the reference is the policy as it is: the first samples of each iteration have no divergence from it. As a
    # teacher of self-distillation a policy that is its own average teaches nothing.
    def test_an_average_without_decay_is_the_policy(self):
        rows = self.metrics("tr_dpo.toml", "hard",
                            **{"pipeline.iterations": 3, "models.average.ema.decay": 0, "models.average.ema.every_steps": 1})
        for row in rows:
            self.assertAlmostEqual(row["preference/reward_margin"], 0, places=4)

    def test_the_plan_has_what_an_average_takes(self):
        plans = {}
        for name in ("dpo", "tr_dpo"):
            done = run("plan", ROOT / f"pipelines/{name}.toml", "--format", "json")
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertNotIn("warning", done.stderr)  # a reference that follows is meant to
            plans[name] = json.loads(done.stdout)
        weights = [plan["predicted"]["weights_bytes"] for plan in plans.values()]
        self.assertAlmostEqual(weights[1], weights[0], delta=0.01 * weights[0])  # as much as a frozen reference in float32
        self.assertGreater(plans["tr_dpo"]["predicted"]["checkpoint_copy_bytes"],
                           plans["dpo"]["predicted"]["checkpoint_copy_bytes"])
        self.metrics("tr_dpo.toml", "measured", **{"pipeline.iterations": 2})
        for found in json.loads((self.folder / "measured/memory.json").read_text())["classes"]:
            if found["name"] in ("weights", "checkpoint copy"):
                self.assertLessEqual(found["peak_bytes"], found["planned_bytes"], found)

    # Each sample is computed by the model of its own domain alone: as if all were asked, and the right one chosen.
    def test_a_column_of_the_data_chooses_the_teacher(self):
        prompts = [json.loads(line) for line in (ROOT / "pipelines/data/arithmetic_train.jsonl").read_text().splitlines()[:64]]
        with open(self.folder / "domains.jsonl", "w") as file:
            for number, row in enumerate(prompts):
                file.write(json.dumps(row | {"domain": ("easy", "hard", "other")[number % 3]}) + "\n")
        pipeline = self.folder / "chosen.toml"
        pipeline.write_text(f"""
            extends = "{ROOT}/pipelines/distill.toml"
            [pipeline]
            iterations = 2
            [models.clerk]
            checkpoint = "{SHIPPED}"
            [nodes]
            teacher = false
            [nodes.prompts]
            path = "domains.jsonl"
            columns = ["domain"]
            shuffle = false
            groups_per_iteration = 32
            [nodes.chosen]
            type = "logprobs_by_column"
            inputs = ["generate"]
            by = "domain"
            models = [{{ value = "easy", model = "clerk" }}, {{ value = "hard", model = "teacher" }}]
            otherwise = "teacher"
            [nodes.clerk]
            type = "logprobs"
            inputs = ["generate"]
            model = "clerk"
            writes = "clerk_logprobs"
            [nodes.expert]
            type = "logprobs"
            inputs = ["generate"]
            model = "teacher"
            writes = "expert_logprobs"
            [nodes.advantages]
            inputs = ["chosen", "clerk", "expert"]
            [nodes.samples]
            type = "write_jsonl"
            inputs = ["advantages"]
            fields = ["domain", "teacher_logprobs", "clerk_logprobs", "expert_logprobs"]
            """)
        done = run("run", pipeline, "--run-dir", self.folder / "chosen")
        self.assertEqual(done.returncode, DONE, done.stderr)
        samples = self.rows_of("chosen/samples.jsonl")
        self.assertEqual(len(samples), 128)
        for sample in samples:
            self.assertEqual(sample["teacher_logprobs"],
                             sample["clerk_logprobs" if sample["domain"] == "easy" else "expert_logprobs"])
            self.assertNotEqual(sample["clerk_logprobs"], sample["expert_logprobs"])

        refused = run("run", pipeline, "--run-dir", self.folder / "refused", *sets(**{"nodes.chosen.otherwise": ""}))
        self.assertNotEqual(refused.returncode, DONE)
        self.assertIn("domains.jsonl:3", refused.stderr)
        self.assertIn("node 'chosen' cannot use domain \"other\": it is none of \"easy\", \"hard\"", refused.stderr)

    def test_samples_of_the_shipped_model_are_better_together(self):
        row = self.metrics("evaluate_samples.toml", "samples")[0]
        print(", ".join(f"{key} {value:.3f}" for key, value in row.items() if "_at_" in key))
        self.assertAlmostEqual(row["reward/pass_at_1"], row["reward/score_mean"], places=6)
        self.assertAlmostEqual(row["reward/maj_at_1"], row["reward/pass_at_1"], places=6)
        self.assertGreater(row["reward/pass_at_4"], row["reward/pass_at_1"] + 0.2)
        self.assertGreater(row["reward/pass_at_8"], row["reward/pass_at_4"])


if __name__ == "__main__":
    unittest.main(verbosity=2)
