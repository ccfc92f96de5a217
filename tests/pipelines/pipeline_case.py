"""What the tests of pipelines/ share: a pipeline runs to its end, and what came of it."""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from support import DATA, DONE, ROOT, Case, run, sets, training_state  # noqa: E402, F401


def mean(rows, key):
    return sum(row[key] for row in rows) / len(rows)


class PipelineCase(Case):
    def metrics(self, pipeline, name, **overrides):
        """Runs a pipeline to its end; the rows of its metrics.jsonl."""
        folder = self.folder / name
        result = run(ROOT / "pipelines" / pipeline, "--run-dir", folder, *sets(**overrides), timeout=600)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def accuracy(self, checkpoint, name):
        """Share of the held-out sums that the likeliest answer gets right."""
        return self.metrics("evaluate.toml", name, **{"models.policy.checkpoint": str(checkpoint)})[0]["reward/score_mean"]
