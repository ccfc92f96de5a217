"""[cluster] shard = "parameters": the ranks of a host have the weights of all models in common, and each what it owns of the
rest."""

import json
import shutil
import unittest

from pipeline_case import DONE, ROOT, SLOTS, RanksCase, run, sets

SHARDED = {"cluster.shard": "parameters"}
WIDE = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 256, "intermediate_size": 1024,
        "num_hidden_layers": 6, "num_attention_heads": 8, "num_key_value_heads": 4, "head_dim": 32, "vocab_size": 97,
        "max_position_embeddings": 256, "rms_norm_eps": 1e-5, "rope_theta": 10000.0, "hidden_act": "silu",
        "tie_word_embeddings": False}
PPO_MODELS = ("actor", "reference", "critic")


def classes_of(plan):
    return {name: plan["predicted"][f"{name}_bytes"] for name in ("weights", "gradient", "optimizer")}


class Sharded(RanksCase):
    def test_all_numbers_of_ranks_have_one_result(self):
        """Four models of a PPO, pairs of answers, lag with its older versions, and adapters of a mixture of experts."""
        cases = {"ppo.toml": {}, "tr_dpo.toml": {"models.average.ema.every_steps": 1}, "grpo.toml": {"schedule.policy_lag": 1},
                 ROOT / "tests/pipelines/grpo_experts.toml": {}}
        for pipeline, more in cases.items():
            with self.subTest(str(pipeline)):
                runs = [self.run_on(ranks, pipeline, **SHARDED, **{"pipeline.iterations": 3}, **more) for ranks in (1, 2)]
                # Two groups of two, as on two hosts.
                runs.append(self.run_on(4, pipeline, **SHARDED, **{"pipeline.iterations": 3, "cluster.shard_ranks": 2}, **more))
                for other in runs[1:]:
                    self.assert_equal_runs(other, runs[0])

    def test_losses_are_those_of_one_rank_with_its_own_memory(self):
        more = {"pipeline.iterations": 20}
        for pipeline, metric in (("sft.toml", "policy/loss"), ("reward_model.toml", "reward_model/loss")):
            with self.subTest(pipeline):
                alone, shared = self.run_on(1, pipeline, "alone", **more), self.run_on(4, pipeline, **SHARDED, **more)
                ours, theirs = ([row[metric] for row in self.lines_of(folder)] for folder in (shared, alone))
                self.assertEqual(len(ours), 20)
                for a, b in zip(ours, theirs):
                    self.assertAlmostEqual(a, b, delta=1e-5 * max(1, abs(b)))

    def test_goes_on_with_another_number_of_ranks(self):
        whole = self.run_on(2, "ppo.toml", "whole", **SHARDED, **{"pipeline.iterations": 6})
        folder = self.run_on(4, "ppo.toml", **SHARDED, **{"pipeline.iterations": 3})
        for ranks, iterations, more in ((1, 4, {}), (4, 5, {"cluster.shard_ranks": 2}), (2, 6, {})):
            done = run("launch", "--ranks", ranks, ROOT / "pipelines/ppo.toml", "--run-dir", folder, "--resume", "auto",
                       *sets(**SLOTS, **SHARDED, **{"pipeline.iterations": iterations}, **more), timeout=300)
            self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(self.lines_of(folder)[-1], self.lines_of(whole)[-1])
        self.assertEqual(self.models_of(folder), self.models_of(whole))

    def test_it_rounds_in_another_way_and_says_so(self):
        folder = self.run_on(2, "sft.toml", **{"pipeline.iterations": 2})
        done = run("launch", "--ranks", 2, ROOT / "pipelines/sft.toml", "--run-dir", folder, "--resume", "auto",
                   *sets(**SLOTS, **SHARDED, **{"pipeline.iterations": 4}))
        self.assertNotEqual(done.returncode, DONE)
        self.assertIn('[cluster] shard: "optimizer" -> "parameters" (gradients are rounded in another way with it)', done.stderr)

    def test_a_rank_that_is_killed_takes_the_others_along(self):
        self.kill_a_rank(4, "ppo.toml", rank=2, **SLOTS, **SHARDED)


class Memory(RanksCase):
    def model(self):
        folder = self.folder / "wide"
        if not folder.exists():
            shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", folder, ignore=shutil.ignore_patterns("*.safetensors"))
            (folder / "config.json").write_text(json.dumps(WIDE))
        return folder

    def wide(self):
        models = {f"models.{name}.{key}": value for name in PPO_MODELS
                  for key, value in (("checkpoint", str(self.model())), ("init", "random"))}
        return {**models, "checkpoint.copy": "none", "nodes.prompts.groups_per_iteration": 8, "pipeline.iterations": 2,
                "nodes.held_out": "false", "nodes.held_out_answers": "false", "nodes.held_out_score": "false"}

    def plan(self, ranks, **more):
        done = run("plan", "--ranks", ranks, "--format", "json", ROOT / "pipelines/ppo.toml",
                   *sets(**SLOTS, **self.wide(), **more))
        return done, json.loads(done.stdout) if done.returncode == DONE else None

    def test_is_what_was_planned(self):
        for sharing in (4, 2):
            with self.subTest(sharing=sharing):
                more = {} if sharing == 4 else {"cluster.shard_ranks": sharing}
                self.assert_as_planned(self.run_on(4, "ppo.toml", f"-{sharing}", **SHARDED, **more, **self.wide()),
                                       self.plan(4, **SHARDED, **more)[1])

    def assert_as_planned(self, folder, plan):
        planned = classes_of(plan)
        for row in json.loads((folder / "memory.json").read_text())["ranks"]:
            for name, key in (("weights", "weights"), ("gradients", "gradient"), ("optimizer", "optimizer")):
                measured = row["classes"][name]
                self.assertLessEqual(measured, 1.005 * planned[key], f"{name} of rank {row['rank']}")
                self.assertGreaterEqual(measured, 0.97 * planned[key], f"{name} of rank {row['rank']}")

    def test_plan_says_who_has_what(self):
        shown = run("plan", "--ranks", 4, ROOT / "pipelines/ppo.toml", *sets(**SLOTS, **SHARDED)).stdout
        self.assertIn("those that train have weights, gradients and optimizers once, on one host, a part each\n", shown)
        self.assertNotIn("of gradients an iteration", shown)
        shown = run("plan", "--ranks", 4, ROOT / "pipelines/ppo.toml",
                    *sets(**SLOTS, **SHARDED, **{"cluster.shard_ranks": 2})).stdout
        self.assertIn("each 2 ranks that train have weights and gradients once, on one host: 2 groups; the optimizers are "
                      "once in all, a part each\n", shown)
        self.assertIn("of gradients an iteration", shown)

    def test_a_ppo_that_one_rank_refuses_runs_on_four(self):
        _, alone = self.plan(1)
        _, shared = self.plan(4, **SHARDED)
        totals = [plan["predicted"]["total_bytes"] for plan in (alone, shared)]
        self.assertLess(totals[1], 0.6 * totals[0])
        limit = {"runtime.memory_gib": 1.02 * totals[1] / 2**30}
        for ranks in (1, 4):
            refused, _ = self.plan(ranks, **limit)
            self.assertEqual(refused.returncode, 78)
            self.assertIn("does not fit", refused.stderr)
        self.assertIn('shard = "parameters" in [cluster]', refused.stderr)
        self.run_on(4, "ppo.toml", "limited", **SHARDED, **self.wide(), **limit)


if __name__ == "__main__":
    unittest.main()
