"""A reward model that a pipeline trained gives the same scores in type = "reward_model" and in transformers.

    python reward_model_round_trip.py PROGRAM      needs torch and transformers
"""

import json
import pathlib
import sys
import tempfile

import torch
from transformers import AutoModelForSequenceClassification

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/quick_start"))
from quick_start import run_program  # noqa: E402


SCORES = """
[pipeline]
name = "scores"
iterations = 1
[budget]
tokens_in_flight = 4096
micro_batch_tokens = 256
[models.reward]
checkpoint = {checkpoint}
head = "value"
[nodes.examples]
type = "jsonl_examples"
path = {path}
model = "reward"
groups_per_iteration = 100
max_tokens = 16
[nodes.score]
type = "reward_model"
inputs = ["examples"]
model = "reward"
[nodes.samples]
type = "write_jsonl"
inputs = ["score"]
fields = ["tokens", "score"]
"""


def run(program, *words):
    result = run_program([program, *words], cwd=ROOT, timeout=600)
    assert result.returncode == 0, result.stderr


def main(program):
    with tempfile.TemporaryDirectory(prefix="sluice-") as temporary:
        folder = pathlib.Path(temporary)
        run(program, ROOT / "pipelines/reward_model.toml", "--run-dir", folder / "train", "--set", "pipeline.iterations=10")
        checkpoint = folder / "train/checkpoint/reward"
        pipeline = folder / "scores.toml"
        pipeline.write_text(SCORES.format(checkpoint=json.dumps(str(checkpoint)),
                                          path=json.dumps(str(ROOT / "pipelines/data/arithmetic_demonstrations.jsonl"))))
        run(program, pipeline, "--run-dir", folder / "scores")
        rows = [json.loads(line) for line in (folder / "scores/samples.jsonl").read_text().splitlines()]
        assert len(rows) == 100

        model, loading = AutoModelForSequenceClassification.from_pretrained(checkpoint, dtype=torch.float32,
                                                                            output_loading_info=True)
        assert not loading["missing_keys"] and not loading["unexpected_keys"], loading
        with torch.no_grad():
            expected = [model.eval()(torch.tensor([row["tokens"]])).logits.item() for row in rows]
        worst = max(abs(row["score"] - logit) for row, logit in zip(rows, expected))
        spread = max(expected) - min(expected)
        print(f"{len(rows)} samples, scores over a range of {spread:.3f}: the largest difference is {worst:.2g}")
        assert spread > 0.01, "the reward model learned nothing that could be compared"
        assert worst < 1e-4


if __name__ == "__main__":
    main(*sys.argv[1:])
