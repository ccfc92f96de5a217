"""Learning rates that change over a run: what the metrics say, and runs that go on."""

import json
import math
import unittest

from support import DONE, ROOT, Case, read_safetensors, repeatable, run, sets

SFT = ROOT / "pipelines/sft.toml"
SMALL = {"pipeline.iterations": 6, "nodes.examples.groups_per_iteration": 16, "budget.micro_batch_tokens": 512,
         "checkpoint.every_iterations": 2, "checkpoint.keep_last": 0}
MODEL = "models.policy.optimizer."
WSD = {MODEL + "learning_rate": 1e-3, MODEL + "schedule": '"wsd"', MODEL + "warmup": 0.3, MODEL + "decay": 3,
       MODEL + "minimum": 0.1}


def cosine(iteration, iterations, warmup, least):
    if iteration < warmup:
        return iteration / warmup
    factor = 0.5 * (1 + math.cos(math.pi * (iteration - warmup) / (iterations - warmup)))
    return factor * (1 - least) + least


class LearningRates(Case):
    def train(self, name="run", **settings):
        folder = self.folder / name
        done = run("run", SFT, "--run-dir", folder, *sets(**(SMALL | settings)))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return folder

    def test_every_model_that_is_trained_has_its_own_metric(self):
        schedule = {"models.actor.optimizer.schedule": '"cosine"', "models.actor.optimizer.warmup": 2,
                    "models.actor.optimizer.minimum": 0.1}
        rows = self.run_ppo(**schedule, **{"pipeline.iterations": 5, "models.actor.optimizer.learning_rate": 2e-4}).metrics
        for i, row in enumerate(rows):
            self.assertAlmostEqual(row["policy/learning_rate"], 2e-4 * cosine(i, 5, 2, 0.1), delta=1e-18)
            self.assertEqual(row["value/learning_rate"], 1e-3)
            self.assertEqual(row["policy/optimizer_steps"], 4)  # all with the learning rate of the iteration
            self.assertNotIn("learning_rate", row)

    def test_a_run_that_goes_on_has_the_same_bits(self):
        folder = self.train(**WSD)
        metrics = lambda: repeatable([json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()])
        weights = lambda: read_safetensors(folder / "checkpoint/policy/model.safetensors")
        before = metrics(), weights()
        self.assertEqual([row["policy/learning_rate"] for row in before[0]][:4], [1e-4, 5.5e-4, 1e-3, 1e-3])
        done = run("resume", folder, "--from", "2")  # the later ones may have been passed over, while it was written
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual((metrics(), weights()), before)

    def test_other_iterations_change_results_where_the_learning_rate_follows_them(self):
        short, more = {"pipeline.iterations": 1}, sets(**{"pipeline.iterations": 2})
        follows = self.train("follows", **(short | {MODEL + "warmup": 0.5}))
        self.assert_refused(run("resume", follows, *more), "iterations: 1 -> 2 (the learning rate of policy follows it)",
                            "--accept-changes")
        constant = run("resume", self.train("constant", **(short | {MODEL + "warmup": 1})), *more)
        self.assertEqual(constant.returncode, DONE, constant.stderr)

    def test_the_plan_says_how_the_learning_rate_goes(self):
        done = run("plan", SFT, *sets(**(SMALL | WSD)))
        self.assertIn("  learning     policy 0.001, warm-up of 2 iterations, in the last 3 iterations to 1e-04\n", done.stdout,
                      done.stderr)
        self.assertNotIn("learning  ", run("plan", SFT, *sets(**SMALL)).stdout)
        self.assertIn('schedule = "wsd", warmup = 0.3, decay = 3.0, decay_shape = "cosine", minimum = 0.1',
                      run("plan", SFT, "--config", *sets(**(SMALL | WSD))).stdout)

    def test_a_run_with_a_schedule_can_be_simulated(self):
        done = run("simulate", SFT, *sets(**(SMALL | WSD)))
        self.assertEqual(done.returncode, DONE, done.stderr)


if __name__ == "__main__":
    unittest.main()
