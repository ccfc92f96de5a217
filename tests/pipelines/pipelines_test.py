"""Every other pipeline in pipelines/ runs, and what should improve does."""

import json
import os
import unittest

from pipeline_case import DATA, DONE, ROOT, ROUTES, PipelineCase, mean, repeatable, run, sets


class Pipelines(PipelineCase):
    def assert_improves(self, rows, by):
        scores = [row["reward/score_mean"] for row in rows]
        first, last = sum(scores[:3]) / 3, sum(scores[-3:]) / 3
        print(f"{first:.3f} -> {last:.3f}")
        self.assertGreater(last, first + by)

    def test_adapters_learn_and_are_saved_merged_and_alone(self):
        rows = self.metrics("../tests/pipelines/ppo_adapters.toml", "adapters")
        self.assert_improves(rows, 0.25)
        self.assertEqual(rows[0]["reference/kl_mean"], 0.0)  # the base is the model as it was
        saved = self.folder / "adapters/checkpoint/actor"
        self.assertTrue((saved / "adapter/adapter_model.safetensors").exists())
        # On from what was saved, both ways.
        merged = self.accuracy(saved, "adapters-merged")
        more = {"pipeline.iterations": 1, "models.actor.lora.adapter": str(saved / "adapter")}
        again = self.metrics("../tests/pipelines/ppo_adapters.toml", "adapters-again", **more)[0]["reward/score_mean"]
        self.assertGreater(merged, 0.7)
        self.assertGreater(again, 0.7)

    def test_one_model_learns_as_actor_and_critic(self):
        rows = self.metrics("../tests/pipelines/ppo_one_trunk.toml", "one-trunk")
        self.assert_improves(rows, 0.25)
        self.assertNotIn("value/grad_norm", rows[0])
        self.assertLess(rows[-1]["value/loss"], rows[0]["value/loss"])

    def test_dynamic_sampling_accounts_for_every_group(self):
        rows = self.metrics("ppo_dynamic.toml", "dynamic", **{"pipeline.iterations": 8})
        for row in rows:
            kept, dropped, surplus = (row[f"filter/useful/groups_{what}"] for what in ("kept", "dropped", "surplus"))
            self.assertEqual(kept + dropped + surplus, row["data/groups"])
            self.assertEqual(kept + row["filter/useful/groups_missing"], 64)
            self.assertLessEqual(row["data/groups"], 3 * 64)
            self.assertGreater(dropped, 0)
            if row["filter/useful/groups_missing"] > 0:
                self.assertEqual(row["data/groups"], 3 * 64, "fewer were drawn than allowed")

    def test_an_iteration_of_which_no_group_is_left_trains_nothing(self):
        rows = self.metrics("ppo_dynamic.toml", "nothing-left", **{
            "pipeline.iterations": 2, "nodes.prompts.groups_per_iteration": 4, "nodes.useful.least_mean_score": 1.5,
            "nodes.useful.most_draws": 2})
        self.assertEqual(len(rows), 2)
        for row in rows:
            self.assertEqual((row["filter/useful/groups_kept"], row["filter/useful/groups_dropped"],
                              row["filter/useful/groups_missing"]), (0, 8, 4))
            self.assertEqual(row["policy/optimizer_steps"], 0)

    def test_the_shipped_model_is_good_but_clearly_imperfect(self):
        accuracy = self.accuracy(ROOT / "pipelines/models/tiny-arithmetic", "shipped")
        print(f"tiny-arithmetic, greedy on held-out sums: {accuracy:.3f}")
        self.assertGreaterEqual(accuracy, 0.40)
        self.assertLessEqual(accuracy, 0.60)

    def test_sft_learns_the_demonstrations(self):
        rows = self.metrics("sft.toml", "sft", **{"pipeline.iterations": 600})
        # Always answering one of the three kinds that the clerk gives leaves -(2/5 ln 2/5 + 2/5 ln 2/5 + 1/5 ln 1/5) nats a sum.
        self.assertGreater(rows[0]["policy/loss"], 3.5)
        self.assertLess(sum(row["policy/loss"] for row in rows[-20:]) / 20, 0.60)

    def test_a_policy_learns_to_call_the_calculator(self):
        rows = self.metrics("calculator.toml", "calculator")
        first, last = rows[:2], rows[-10:]
        print(f"score {mean(first, 'reward/score_mean'):.3f} -> {mean(last, 'reward/score_mean'):.3f}, "
              f"turns {mean(first, 'rollout/turns_mean'):.3f} -> {mean(last, 'rollout/turns_mean'):.3f}")
        self.assertLessEqual(mean(first, "reward/score_mean"), 0.65)
        self.assertGreaterEqual(mean(last, "reward/score_mean"), 0.90)
        self.assertLessEqual(mean(first, "rollout/turns_mean"), 1.70)  # 1: it guesses; 2: it calls once
        self.assertGreaterEqual(mean(last, "rollout/turns_mean"), 1.90)

    def test_a_policy_learns_to_call_a_tool_of_a_server(self):
        rows = self.metrics("../examples/10_tools/tools.toml", "tools", **{"pipeline.iterations": 14})
        first, last = rows[:1], rows[-4:]
        self.assertLessEqual(mean(first, "reward/score_mean"), 0.65)
        self.assertGreaterEqual(mean(last, "reward/score_mean"), 0.85)
        self.assertLessEqual(mean(first, "rollout/tool_calls_mean"), 0.70)
        self.assertGreaterEqual(mean(last, "rollout/tool_calls_mean"), 0.90)
        self.assertLessEqual(mean(last, "rollout/failed_tool_calls_mean"), 0.10)

    def test_sft_learns_to_call_every_other_time(self):
        rows = self.metrics("calculator_sft.toml", "calculator_sft")
        checkpoint = str(self.folder / "calculator_sft/checkpoint/policy")
        overrides = {"models.actor.checkpoint": checkpoint, "models.critic.checkpoint": checkpoint, "pipeline.iterations": 1}
        self.assertGreater(rows[0]["policy/loss"], 3.5)
        start = self.metrics("calculator.toml", "calculator_start", **overrides)[0]
        self.assertGreaterEqual(start["rollout/turns_mean"], 1.3)
        self.assertLessEqual(start["rollout/turns_mean"], 1.7)

    # In passes of some samples, with places for few of them; questions that share the prompt of their group.
    def test_training_computes_the_bits_that_were_sampled(self):
        tight = {"nodes.generate.max_running_samples": 24, "budget.admission": "on_demand", "budget.pass_tokens": 64}
        for pipeline in ("ppo", "grpo", "ppo_gsm8k"):
            for dtype in ("float32", "bfloat16"):
                for place, overrides in (("wide", {}), ("tight", tight)):
                    if pipeline == "ppo_gsm8k" and place == "tight":
                        continue
                    with self.subTest(pipeline=pipeline, dtype=dtype, place=place):
                        rows = self.metrics(f"{pipeline}.toml", f"{pipeline}-{dtype}-{place}", **overrides, **{
                            "pipeline.iterations": 3, "models.actor.dtype": dtype, "nodes.train.on_policy": "exact"})
                        self.assertEqual([row["policy/logprob_difference_max"] for row in rows], [0.0] * 3)

    # Of random weights, which have no right answers: it learns to answer with a digit. Routes of the weights that train change
    # nothing. The second one has a layer with an MLP.
    def test_a_mixture_of_experts_learns_the_bits_that_it_sampled_and_goes_on(self):
        for dtype, model in (("float32", self.mixture()), ("bfloat16", self.mixture(decoder_sparse_step=2))):
            with self.subTest(dtype=dtype):
                of = {"models.actor.checkpoint": str(model), "models.actor.dtype": dtype}
                rows = self.metrics("../tests/pipelines/grpo_experts.toml", f"whole-{dtype}", **of)
                self.assert_improves(rows, 0.2)
                self.assertEqual([row["policy/logprob_difference_max"] for row in rows], [0.0] * 12)
                self.assertEqual([row["router/rerouted"] for row in rows], [0.0] * 12)
                self.metrics("../tests/pipelines/grpo_experts.toml", f"parts-{dtype}", **of, **ROUTES,
                             **{"pipeline.iterations": 4})
                done = run("resume", self.folder / f"parts-{dtype}", *sets(**{"pipeline.iterations": 12}), timeout=600)
                self.assertEqual(done.returncode, DONE, done.stderr)
                lines = (self.folder / f"parts-{dtype}/metrics.jsonl").read_text().splitlines()
                self.assertEqual(*(repeatable(metrics) for metrics in (rows, [json.loads(line) for line in lines])))

    def test_a_loss_of_the_routers_spreads_tokens_over_the_experts(self):
        of = {"models.actor.checkpoint": str(self.mixture()), "nodes.train.on_policy": "measured"}
        last = {}
        for weight in (0.0, 0.05):
            rows = self.metrics("../tests/pipelines/grpo_experts.toml", f"balance-{weight}", **of,
                                **{"models.actor.router_aux_loss": weight})
            last[weight] = rows[-1]
            print({name: [round(row[name], 3) for row in (rows[0], rows[-1])] for name in rows[0] if name.startswith("router/")})
        for name in ("router/load_max", "router/load_max_worst_layer", "router/aux_loss"):
            self.assertLess(last[0.05][name], last[0.0][name] - 0.1, name)

    # The calculator of the engine and one in Python: nothing but who replies differs.
    def test_an_environment_in_another_process_gives_the_same_run(self):
        own = self.metrics("calculator.toml", "calculator_own", **{"pipeline.iterations": 2})
        process = self.metrics("../examples/07_calculator/calculator_process.toml", "calculator_process")
        for key in ("reward/score_mean", "rollout/turns_mean", "rollout/response_length_mean", "rollout/sampled_tokens",
                    "policy/loss", "policy/grad_norm"):
            self.assertEqual([row[key] for row in process], [row[key] for row in own], key)

    def test_gsm8k_runs_on_its_own_problems(self):
        rows = self.metrics("ppo_gsm8k.toml", "own")
        self.assertEqual([row["data/samples"] for row in rows], [8] * 4)

    def test_gsm8k_sends_the_question_as_the_users_turn(self):
        self.metrics("ppo_gsm8k.toml", "turn", **{"pipeline.iterations": 1})
        sample = json.loads((self.folder / "turn/samples.jsonl").read_text().splitlines()[0])
        # as the model's template has it
        self.assertRegex(sample["prompt"], r"(?s)^user: A .*\?\nThink step by step\. .*<eos>\nassistant: $")

    def test_gsm8k_runs_on_the_real_data(self):
        path = DATA / "gsm8k/train.jsonl"
        if not path.exists():
            self.assertNotEqual(os.environ.get("CI"), "true", f"{path} is missing")
            self.skipTest(f"{path} is not there")
        rows = self.metrics("ppo_gsm8k.toml", "real", **{"nodes.prompts.path": str(path)})
        self.assertEqual([row["data/samples"] for row in rows], [8] * 4)
        samples = [json.loads(line) for line in (self.folder / "real/samples.jsonl").read_text().splitlines()]
        self.assertEqual(len(samples), 32)


if __name__ == "__main__":
    unittest.main(verbosity=2)
