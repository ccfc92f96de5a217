"""The learning is honest: samples come from the published weights, and without learning nothing improves."""

import json
import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from support import DONE, ROOT, Case, run, sets  # noqa: E402

FROZEN = {"models.actor.optimizer.learning_rate": 0.0, "models.critic.optimizer.learning_rate": 0.0}


class Honesty(Case):
    def run_ppo(self, name, iterations, **overrides):
        """Runs ppo.toml with the samples written out; its folder."""
        pipeline = self.write(name + ".toml", f"""
            extends = {json.dumps(str(ROOT / "pipelines/ppo.toml"))}
            [nodes.samples]
            type = "write_jsonl"
            inputs = ["score"]
        """)
        folder = self.folder / name
        result = run(pipeline, "--run-dir", folder, *sets(**{"pipeline.iterations": iterations}, **overrides))
        self.assertEqual(result.returncode, DONE, result.stderr)
        return folder

    def responses(self, folder, iteration):
        samples = map(json.loads, (folder / "samples.jsonl").read_text().splitlines())
        return [sample["response"] for sample in samples if sample["iteration"] == iteration]

    def test_samples_are_drawn_from_the_published_weights(self):
        frozen = self.run_ppo("frozen", 4, **FROZEN)  # every version is the same
        on_policy = self.run_ppo("lag0", 4)
        lagging = self.run_ppo("lag2", 4, **{"schedule.policy_lag": 2})
        first = [self.responses(frozen, i) for i in range(4)]
        self.assertEqual(len(first[0]), 512)
        # At lag 0 only iteration 0 samples with version 0; at lag 2 iterations 0, 1 and 2 do, however far training is by then.
        self.assertEqual(self.responses(on_policy, 0), first[0])
        self.assertNotEqual(self.responses(on_policy, 1), first[1])
        for iteration in range(3):
            self.assertEqual(self.responses(lagging, iteration), first[iteration])
        self.assertNotEqual(self.responses(lagging, 3), first[3])

    def test_with_learning_rate_zero_the_score_does_not_rise(self):
        folder = self.run_ppo("frozen", 30, **FROZEN)
        scores = [json.loads(line)["reward/score_mean"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        # 10 x 512 samples: five standard errors of a difference of two means of Bernoulli variables are below 0.05.
        self.assertLess(abs(sum(scores[-10:]) / 10 - sum(scores[:10]) / 10), 0.05)


if __name__ == "__main__":
    unittest.main(verbosity=2)
