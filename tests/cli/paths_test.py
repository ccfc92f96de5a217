"""Pipelines with several sources: what measures while the run trains, shares of the budget, and runs that end early."""

import json
import re
import unittest

from support import DONE, FAILED, PPO, ROOT, SMALL, Case, repeatable, run, sets, start, wait_for

WITHOUT = {"nodes.held_out": False, "nodes.held_out_answers": False, "nodes.held_out_score": False,
           "budget.tokens_in_flight": 8192, "nodes.held_out.groups_per_iteration": None, "nodes.held_out.every_iterations": None}
SCORE = "held_out/reward/score_mean"
TRAINS = {"pipeline.iterations": 5, "nodes.held_out.every_iterations": 2}


def values(done, metric=SCORE):
    """By iteration, where it was measured."""
    return {row["iteration"]: row[metric] for row in done.metrics if metric in row}


class Measuring(Case):
    def test_measuring_changes_no_bit_of_the_training(self):
        with_it, without = self.run_ppo("with", **TRAINS), self.run_ppo("without", **{**TRAINS, **WITHOUT})
        self.assertEqual(with_it.weights("actor"), without.weights("actor"))
        self.assertEqual(with_it.weights("critic"), without.weights("critic"))
        ours = [{key: value for key, value in row.items() if "held_out" not in key} for row in repeatable(with_it.metrics)]
        self.assertEqual(ours, repeatable(without.metrics))

    def test_it_measures_before_after_every_other_iteration_and_after_the_last(self):
        done = self.run_ppo("run", **TRAINS)
        self.assertEqual(sorted(values(done)), [0, 1, 3, 4])
        self.assertEqual(values(done, "held_out/rollout/policy_version"), {0: 0, 1: 2, 3: 4, 4: 5})
        self.assertRegex(done.stdout, r"held_out +[\d.]+ before training -> [\d.]+ after iteration 5 \(measured 4 times\)")

    def test_it_measures_what_evaluate_says_of_the_checkpoints(self):
        done = self.run_ppo("run", **TRAINS, **{"nodes.held_out.groups_per_iteration": 100})
        for iteration, checkpoint in ((0, ROOT / "pipelines/models/tiny-arithmetic"), (4, done.folder / "checkpoint/actor")):
            folder = self.folder / f"evaluate-{iteration}"
            other = run(ROOT / "pipelines/evaluate.toml", "--run-dir", folder,
                        *sets(**{"models.policy.checkpoint": str(checkpoint), "nodes.prompts.groups_per_iteration": 100}))
            self.assertEqual(other.returncode, DONE, other.stderr)
            row = json.loads((folder / "metrics.jsonl").read_text())
            self.assertEqual(row["reward/score_mean"], values(done)[iteration])

    def test_the_checkpoint_that_measures_best_stays(self):
        keys = {"checkpoint.every_iterations": 1, "checkpoint.keep_last": 1, "checkpoint.keep_best": SCORE,
                "models.actor.optimizer.learning_rate": 1e-2, "nodes.held_out.groups_per_iteration": 200}
        done = self.run_ppo("run", **TRAINS, **keys)
        measured = {iteration + 1: value for iteration, value in values(done).items() if iteration > 0}
        best = max(measured, key=lambda iterations: (measured[iterations], -iterations))
        there = {int(path.name) for path in (done.folder / "checkpoints").iterdir()}
        self.assertIn(5, there)
        self.assertTrue(there & {n for n, value in measured.items() if value == measured[best]}, (there, measured))

    def test_what_was_measured_before_training_is_of_no_checkpoint(self):
        keys = {"checkpoint.every_iterations": 1, "checkpoint.keep_last": 1, "checkpoint.keep_best": SCORE,
                "models.actor.optimizer.learning_rate": 0.05}  # ruins it
        done = self.run_ppo("run", **TRAINS, **keys)
        self.assertLess(max(value for iteration, value in values(done).items() if iteration > 0), values(done)[0])
        self.assertNotIn(1, {int(path.name) for path in (done.folder / "checkpoints").iterdir()})

    def test_plan_says_what_the_first_iteration_does_not_measure(self):
        every = {**TRAINS, "nodes.held_out.every_iterations": 1}
        self.assertIn("measured before training, after every iteration but the first", run("plan", PPO, *sets(**every)).stdout)
        self.assertEqual(sorted(values(self.run_ppo("run", **every))), [0, 1, 2, 3, 4])
        one = run("plan", PPO, *sets(**{**every, "pipeline.iterations": 1}))
        self.assertIn("measured before training\n", one.stdout)
        self.assertEqual(one.stderr, "")  # a --set that shortens a run is a trial

    def test_a_scorer_that_fails_in_it_is_named_like_any_other(self):
        script = self.write("scorer.py", "def score(prompts, completions, **columns):\n    raise ValueError('scorer down')\n")
        done = self.run_ppo("run", expect=FAILED, **TRAINS,
                            **{"nodes.held_out_score": f'{{ type = "python_scorer", '
                               f'file = {json.dumps(str(script))}, function = "score", inputs = ["held_out_answers"] }}'})
        self.assertIn("'held_out_score'", done.stderr)
        self.assertIn("scorer down", done.stderr)

    def test_a_run_that_was_killed_goes_on_to_the_same_measurements(self):
        keys = {"pipeline.iterations": 8, "nodes.held_out.every_iterations": 2, "checkpoint.every_iterations": 1}
        undisturbed = self.run_ppo("undisturbed", **keys)
        folder = self.folder / "killed"
        process = start("run", PPO, "--run-dir", folder, *sets(**{**SMALL, **keys}))
        metrics = folder / "metrics.jsonl"
        wait_for("three iterations", lambda: metrics.exists() and metrics.read_text().count("\n") >= 3)
        process.kill()
        process.wait()
        done = run("resume", folder)
        self.assertEqual(done.returncode, DONE, done.stderr)
        rows = [json.loads(line) for line in metrics.read_text().splitlines()]
        self.assertEqual(repeatable(rows), repeatable(undisturbed.metrics))


class Stopping(Case):
    def test_a_run_ends_where_its_metric_is_what_it_should_be(self):
        done = self.run_ppo("run", **TRAINS, **{"pipeline.stop_when": f'{{ metric = "{SCORE}", at_least = 0.0 }}'})
        self.assertEqual([row["iteration"] for row in done.metrics], [0, 1])  # what was measured before training ends nothing
        self.assertRegex(done.stdout, rf"stopped +{SCORE} is [\d.]+, at least 0")
        self.assertIn("run finished: 2 iterations", re.sub(r"^ppo", "run", done.stdout, flags=re.M))
        self.assertTrue((done.folder / "checkpoint/actor/model.safetensors").exists())
        again = run("resume", done.folder)
        self.assertEqual(again.returncode, DONE, again.stderr)
        self.assertRegex(again.stdout, rf"^ppo is complete: 2 iterations, .*\n +stopped +{SCORE} is [\d.]+, at least 0")
        on = run("resume", done.folder, *sets(**{"pipeline.stop_when.at_least": 2.0}))
        self.assertEqual(on.returncode, DONE, on.stderr)
        self.assertGreater(len(done.metrics), 1)

    def test_with_a_lag_it_ends_behind_what_may_have_begun(self):
        keys = {"schedule.policy_lag": 2, "nodes.train.recompute_old_logprobs": True,
                "pipeline.stop_when": '{ metric = "reward/score_mean", at_least = 0.0 }'}
        for name in ("once", "twice"):
            self.assertEqual([row["iteration"] for row in self.run_ppo(name, **{**TRAINS, **keys}).metrics], [0, 1, 2])

    def test_patience_counts_on_when_a_run_goes_on(self):
        keys = {"pipeline.iterations": 9, "nodes.held_out.every_iterations": 1, "checkpoint.every_iterations": 1,
                "models.actor.optimizer.learning_rate": 0.0}
        patience = {"pipeline.stop_when": f'{{ metric = "{SCORE}", patience = 3 }}'}
        undisturbed = self.run_ppo("undisturbed", **keys, **patience)
        self.assertEqual([row["iteration"] for row in undisturbed.metrics], [0, 1, 2, 3])
        first = self.run_ppo("first", **{**keys, "pipeline.iterations": 2})
        done = run("resume", first.folder, *sets(**{"pipeline.iterations": 9, **patience}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(len(first.metrics), 4)
        again = run("resume", first.folder, *sets(**{"pipeline.iterations": 9, **patience}))
        self.assertEqual((again.returncode, len(first.metrics)), (DONE, 4), again.stderr)


class Paths(Case):
    def test_two_paths_train_two_models_beside_each_other(self):
        pipeline = self.write("two.toml", f"""
            extends = {json.dumps(str(ROOT / "pipelines/grpo.toml"))}
            [models.clerk]
            checkpoint = {json.dumps(str(ROOT / "pipelines/models/tiny-arithmetic"))}
            optimizer = {{ type = "adamw", learning_rate = 1e-4 }}
            [nodes.demonstrations]
            type = "jsonl_examples"
            path = {json.dumps(str(ROOT / "pipelines/data/arithmetic_demonstrations.jsonl"))}
            model = "clerk"
            groups_per_iteration = 32
            max_tokens = 16
            tokens_in_flight = 1024
            [nodes.imitate]
            type = "train_sft"
            inputs = ["demonstrations"]
            model = "clerk"
        """)
        shape = {"pipeline.iterations": 3, "nodes.prompts.groups_per_iteration": 16}
        both = run(pipeline, "--run-dir", self.folder / "both", *sets(**shape))
        self.assertEqual(both.returncode, DONE, both.stderr)
        rows = [json.loads(line) for line in (self.folder / "both/metrics.jsonl").read_text().splitlines()]
        self.assertTrue(all("policy/loss" in row and "demonstrations/policy/loss" in row for row in rows))
        alone = run(ROOT / "pipelines/grpo.toml", "--run-dir", self.folder / "alone", *sets(**shape))
        self.assertEqual(alone.returncode, DONE, alone.stderr)
        of = lambda name: (self.folder / name / "checkpoint/actor/model.safetensors").read_bytes()  # noqa: E731
        self.assertEqual(of("both"), of("alone"))

    def test_plan_tells_of_every_path(self):
        plan = run("plan", PPO)
        self.assertEqual(plan.returncode, DONE, plan.stderr)
        self.assertIn("held_out: 500 prompts x 1 sample", plan.stdout)
        self.assertIn("of 256 tokens are needed at worst (held_out_answers)", plan.stdout)
        paths = json.loads(run("plan", PPO, "--format", "json").stdout)["paths"]
        self.assertEqual([(path["source"], path["tokens_in_flight"]) for path in paths], [("prompts", 4096), ("held_out", 256)])

    def test_a_simulation_has_every_path(self):
        done = self.run_ppo("run", **TRAINS)
        simulated = run("simulate", PPO, "--costs", done.folder, *sets(**{**SMALL, **TRAINS}))
        self.assertEqual(simulated.returncode, DONE, simulated.stderr)
        self.assertIn("held_out_answers", simulated.stdout)


if __name__ == "__main__":
    unittest.main()
