"""Every pipeline in pipelines/ runs, and what should improve does."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from support import DATA, DONE, ROOT, Case, run, sets  # noqa: E402


class Pipelines(Case):
    def metrics(self, pipeline, name, **overrides):
        """Runs a pipeline to its end; the rows of its metrics.jsonl."""
        folder = self.folder / name
        result = run(ROOT / "pipelines" / pipeline, "--run-dir", folder, *sets(**overrides), timeout=600)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def accuracy(self, checkpoint, name):
        return self.metrics("evaluate.toml", name, **{"models.policy.checkpoint": str(checkpoint)})[0]["score_mean"]

    def test_ppo_learns_to_add_with_every_seed(self):
        for seed in range(1, 6):
            with self.subTest(seed=seed):
                scores = [row["score_mean"] for row in self.metrics("ppo.toml", f"ppo-{seed}", **{"pipeline.seed": seed})]
                first, last = sum(scores[:3]) / 3, sum(scores[-10:]) / 10
                print(f"seed {seed}: {first:.3f} -> {last:.3f}")
                self.assertGreaterEqual(last, 0.90)
                self.assertGreaterEqual(last - first, 0.30)
                # What was learned holds for sums that were never practised, and is in the checkpoint.
                self.assertGreaterEqual(self.accuracy(self.folder / f"ppo-{seed}/checkpoint/actor", f"held-out-{seed}"), 0.90)

    def test_dynamic_sampling_accounts_for_every_group(self):
        rows = self.metrics("ppo_dynamic.toml", "dynamic", **{"pipeline.iterations": 8})
        for row in rows:
            kept, dropped, surplus = (row[f"useful/groups_{what}"] for what in ("kept", "dropped", "surplus"))
            self.assertEqual(kept + dropped + surplus, row["groups"])
            self.assertEqual(kept + row["useful/groups_missing"], 64)
            self.assertLessEqual(row["groups"], 3 * 64)
            self.assertGreater(dropped, 0)
            if row["useful/groups_missing"] > 0:
                self.assertEqual(row["groups"], 3 * 64, "fewer were drawn than allowed")

    def test_the_shipped_model_is_good_but_clearly_imperfect(self):
        accuracy = self.accuracy(ROOT / "pipelines/models/tiny-arithmetic", "shipped")
        print(f"tiny-arithmetic, greedy on held-out sums: {accuracy:.3f}")
        self.assertGreaterEqual(accuracy, 0.40)
        self.assertLessEqual(accuracy, 0.60)

    def test_sft_learns_the_demonstrations(self):
        rows = self.metrics("sft.toml", "sft", **{"pipeline.iterations": 600})
        # Always answering one of the three kinds that the clerk gives leaves -(2/5 ln 2/5 + 2/5 ln 2/5 + 1/5 ln 1/5) nats a sum.
        self.assertGreater(rows[0]["loss"], 3.5)
        self.assertLess(sum(row["loss"] for row in rows[-20:]) / 20, 0.60)

    def test_a_policy_learns_to_call_the_calculator(self):
        rows = self.metrics("calculator.toml", "calculator")
        mean = lambda key, rows: sum(row[key] for row in rows) / len(rows)  # noqa: E731
        first, last = rows[:2], rows[-10:]
        print(f"score {mean('score_mean', first):.3f} -> {mean('score_mean', last):.3f}, "
              f"turns {mean('turns', first):.3f} -> {mean('turns', last):.3f}")
        self.assertLessEqual(mean("score_mean", first), 0.65)
        self.assertGreaterEqual(mean("score_mean", last), 0.90)
        self.assertLessEqual(mean("turns", first), 1.70)  # 1: it guesses; 2: it calls once
        self.assertGreaterEqual(mean("turns", last), 1.90)

    def test_sft_learns_to_call_every_other_time(self):
        rows = self.metrics("calculator_sft.toml", "calculator_sft")
        checkpoint = str(self.folder / "calculator_sft/checkpoint/policy")
        overrides = {"models.actor.checkpoint": checkpoint, "models.critic.checkpoint": checkpoint, "pipeline.iterations": 1}
        self.assertGreater(rows[0]["loss"], 3.5)
        start = self.metrics("calculator.toml", "calculator_start", **overrides)[0]
        self.assertGreaterEqual(start["turns"], 1.3)
        self.assertLessEqual(start["turns"], 1.7)

    # The calculator of the engine and one in Python: nothing but who replies differs.
    def test_an_environment_in_another_process_gives_the_same_run(self):
        own = self.metrics("calculator.toml", "calculator_own", **{"pipeline.iterations": 2})
        process = self.metrics("../examples/07_calculator/calculator_process.toml", "calculator_process")
        for key in ("score_mean", "turns", "response_length", "sampled_tokens", "policy_loss", "grad_norm"):
            self.assertEqual([row[key] for row in process], [row[key] for row in own], key)

    def test_gsm8k_runs_on_its_own_problems(self):
        rows = self.metrics("ppo_gsm8k.toml", "own")
        self.assertEqual([row["samples"] for row in rows], [8] * 4)

    def test_gsm8k_runs_on_the_real_data(self):
        path = DATA / "gsm8k/train.jsonl"
        if not path.exists():
            import os
            self.assertNotEqual(os.environ.get("CI"), "true", f"{path} is missing")
            self.skipTest(f"{path} is not there")
        rows = self.metrics("ppo_gsm8k.toml", "real", **{"nodes.prompts.path": str(path)})
        self.assertEqual([row["samples"] for row in rows], [8] * 4)
        samples = [json.loads(line) for line in (self.folder / "real/samples.jsonl").read_text().splitlines()]
        self.assertEqual(len(samples), 32)


if __name__ == "__main__":
    unittest.main(verbosity=2)
