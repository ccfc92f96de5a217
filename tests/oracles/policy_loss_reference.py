"""Losses and gradients of policy objectives by torch's autograd, for tests/nodes/objectives/policy_reference_test.cpp.

    python3 tests/oracles/policy_loss_reference.py write    tests/golden/nodes/policy_losses.json
    python3 tests/oracles/policy_loss_reference.py check    fails if the torch that is there gives other numbers

The formulas stand here as papers and other systems write them, on matrices of samples that are padded: ratios are multiplied
where ours adds logarithms, and bounds of k1 are ratios. `keys` is what a pipeline writes for the same.
"""

import json
import math
import pathlib
import sys

import torch

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/nodes/policy_losses.json"

# Four samples. Ratios go far both ways at either sign of the advantage, at rare tokens and at likely ones.
SAMPLES = {
    "logprobs": [[-0.02, -1.2, -2.5, -0.7], [-4.2, -0.31, -1.1], [-0.6, -0.05, -3.1, -2.2, -0.9], [-1.7]],
    "old_logprobs": [[-0.3, -1.1, -3.4, -0.75], [-6.0, -0.1, -1.6], [-0.2, -0.06, -2.2, -2.9, -0.95], [-1.5]],
    "rollout_logprobs": [[-0.35, -1.0, -3.5, -0.7], [-5.1, -0.15, -1.4], [-0.21, -0.05, -2.25, -2.8, -0.9], [-1.55]],
    "advantages": [[1.5] * 4, [0.4] * 3, [-1.2] * 5, [-0.7]],
    "mask": [[1, 1, 1, 1], [1, 1, 0], [1, 1, 1, 1, 1], [1]],
}


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [0.0] * (longest - len(row)) for row in rows], dtype=torch.float64)


def ratio_of(x):
    return torch.exp(x["logprobs"] - x["old_logprobs"])


def token_mean(losses, mask):
    return (losses * mask).sum() / mask.sum()


def gmpo(x, low, high):
    """Zhao et al. 2025: the product over a sample of min(w^s, clip(w)^s)^s with s the sign of the advantage, to the power 1 /
    |o|."""
    sign = torch.sign(x["advantages"])
    ratio = ratio_of(x)
    clipped = torch.minimum(ratio**sign, torch.clamp(ratio, math.exp(-low), math.exp(high)) ** sign) ** sign
    one = torch.ones_like(clipped)
    geometric = torch.where(x["mask"] > 0, clipped, one).prod(1) ** (1 / x["mask"].sum(1))
    return -(geometric * x["advantages"][:, 0]).mean()


def dppo(x, divergence, low, high):
    """Qi et al. 2026: an action is left out that is beyond the region on the side that its advantage leads to."""
    p, q = torch.exp(x["old_logprobs"]), torch.exp(x["logprobs"])
    if divergence == "tv":
        up, down = q - p > high, q - p < -low
    else:
        apart = p * torch.log(p / q) + (1 - p) * torch.log((1 - p) / (1 - q))
        up, down = (apart > high) & (q > p), (apart > low) & (q < p)
    left_out = torch.where(x["advantages"] > 0, up, down).detach()
    return token_mean(torch.where(left_out, 0.0, -ratio_of(x) * x["advantages"]), x["mask"])


def gspo_by_sample(x, low, high):
    log_ratio = (x["logprobs"] - x["old_logprobs"]) * x["mask"]
    ratio, advantage = torch.exp(log_ratio.sum(1) / x["mask"].sum(1)), x["advantages"][:, 0]
    return torch.minimum(ratio * advantage, torch.clamp(ratio, 1 - low, 1 + high) * advantage)


def luspo(x, low, high):
    """Liu et al. 2026: the sample's surrogate of GSPO times its length."""
    return -(gspo_by_sample(x, low, high) * x["mask"].sum(1)).mean()


def vespo(x, positive, negative):
    """Shen et al. 2026: w^k exp(lambda (1 - w)) of the sample's ratio, detached, before the policy gradient."""
    w = torch.where(x["mask"] > 0, ratio_of(x), 1.0).prod(1, keepdim=True).detach()
    kernel = [w**k * torch.exp(lam * (1 - w)) for k, lam in (positive, negative)]
    return token_mean(-torch.where(x["advantages"] >= 0, *kernel) * x["advantages"] * x["logprobs"], x["mask"])


def ppo_clip_by_action(x):
    ratio = ratio_of(x)
    return -torch.minimum(ratio * x["advantages"], torch.clamp(ratio, 0.8, 1.2) * x["advantages"])


def rejected_ppo(x, estimator, level, bounds, truncate=None):
    """verl's rollout_rs: bounds of k1 are of rollout over old probability, those of k2 and k3 upper ones of the estimate."""
    ratio, mask = torch.exp(x["old_logprobs"] - x["rollout_logprobs"]), x["mask"]  # of training over sampling
    estimate = {"k1": 1 / ratio, "k2": torch.log(ratio) ** 2 / 2, "k3": ratio - 1 - torch.log(ratio)}[estimator]
    if estimator == "k1":
        joined = {"token": lambda: estimate, "seq_sum": lambda: torch.where(mask > 0, estimate, 1.0).prod(1, keepdim=True),
                  "seq_mean": lambda: torch.where(mask > 0, estimate,
                                                  1.0).prod(1, keepdim=True) ** (1 / mask.sum(1, keepdim=True))}[level]()
    else:
        joined = {"token": lambda: estimate, "seq_sum": lambda: (estimate * mask).sum(1, keepdim=True),
                  "seq_mean": lambda: (estimate * mask).sum(1, keepdim=True) / mask.sum(1, keepdim=True),
                  "seq_max": lambda: (estimate * mask).max(1, keepdim=True).values}[level]()
    accepted = ((joined >= bounds[0]) & (joined <= bounds[1])).double()
    losses = ppo_clip_by_action(x) * accepted
    return token_mean(losses if truncate is None else losses * torch.clamp(ratio, max=truncate), mask)


def icepop(x, low, high):
    """Ling team 2025: the weight of an action is 0 outside of [low, high]."""
    weight = torch.exp(x["old_logprobs"] - x["rollout_logprobs"])
    return token_mean(torch.where((weight >= low) & (weight <= high), weight, 0.0) * ppo_clip_by_action(x), x["mask"])


NO_LOWER = -1.0
CASES = {
    "gmpo": ("gmpo", "", lambda x: gmpo(x, 0.4, 0.4)),
    "gmpo with a narrow clip": ("gmpo", "clip_low = 0.1\nclip_high = 0.2", lambda x: gmpo(x, 0.1, 0.2)),
    "dppo by total variation": ("dppo", "", lambda x: dppo(x, "tv", 0.15, 0.15)),
    "dppo by total variation, bounds apart": ("dppo", "clip_low = 0.01\nclip_high = 0.3", lambda x: dppo(x, "tv", 0.01, 0.3)),
    "dppo by KL": ("dppo", 'divergence = "kl"\nclip_low = 0.02\nclip_high = 0.02', lambda x: dppo(x, "kl", 0.02, 0.02)),
    "luspo": ("gspo", 'aggregation = "sequence_sum"\nclip_high = 0.5', lambda x: luspo(x, 0.2, 0.5)),
    "luspo with a narrow clip": ("gspo", 'aggregation = "sequence_sum"\nclip_low = 2e-3\nclip_high = 2.5e-3',
                                 lambda x: luspo(x, 2e-3, 2.5e-3)),
    "vespo": ("vespo", "", lambda x: vespo(x, (2, 3), (3, 2))),
    "vespo with other kernels": ("vespo", "k_positive = 1\nlambda_positive = 0.5\nk_negative = 0.5\nlambda_negative = 1.5",
                                 lambda x: vespo(x, (1, 0.5), (0.5, 1.5))),
    "icepop": ("ppo_clip", 'correction = "mask"\ncorrection_min = 0.92\ncorrection_max = 1.2', lambda x: icepop(x, 0.92, 1.2)),
}


def add_rejection(name, estimator, level, keys, bounds, truncate=None):
    CASES[name] = ("ppo_clip", keys, lambda x: rejected_ppo(x, estimator, level, bounds, truncate))


def k1_keys(level, low, high):
    return (f'rejection = "{level}"\nrejection_estimator = "k1"\nrejection_min = {math.log(low)!r}\n'
            f'rejection_max = {math.log(high)!r}')


TRUNCATED = '\ncorrection = "truncate"\ncorrection_max = 1.1'
add_rejection("token_k1", "k1", "token", k1_keys("token", 0.9, 1.08), (0.9, 1.08))
add_rejection("token_k2", "k2", "token", 'rejection = "token"\nrejection_estimator = "k2"\nrejection_max = 0.004',
              (NO_LOWER, 0.004))
add_rejection("seq_sum_k1", "k1", "seq_sum", k1_keys("sequence_sum", 0.5, 1.1), (0.5, 1.1))
add_rejection("seq_mean_k1, truncated", "k1", "seq_mean", k1_keys("sequence_mean", 0.7, 1.04) + TRUNCATED, (0.7, 1.04), 1.1)
add_rejection("seq_mean_k3", "k3", "seq_mean", 'rejection = "sequence_mean"\nrejection_max = 0.003', (NO_LOWER, 0.003))
add_rejection("seq_max_k3, truncated", "k3", "seq_max", 'rejection = "sequence_max"\nrejection_max = 0.0055' + TRUNCATED,
              (NO_LOWER, 0.0055), 1.1)
add_rejection("seq_sum_k2", "k2", "seq_sum", 'rejection = "sequence_sum"\nrejection_estimator = "k2"\nrejection_max = 0.013',
              (NO_LOWER, 0.013))


def answer(loss_of):
    x = {name: padded(rows) for name, rows in SAMPLES.items()}
    x["logprobs"].requires_grad_(True)
    loss = loss_of(x)
    loss.backward()
    gradient = [row[: len(given)].tolist() for row, given in zip(x["logprobs"].grad, SAMPLES["logprobs"])]
    return {"loss": loss.item(), "gradient": gradient}


def numbers_of(value):
    if isinstance(value, dict):
        return [number for entry in value.values() for number in numbers_of(entry)]
    return [number for entry in value for number in numbers_of(entry)] if isinstance(value, list) else [value]


def main():
    cases = [{"name": name, "objective": objective, "keys": keys, **answer(loss_of)}
             for name, (objective, keys, loss_of) in CASES.items()]
    if sys.argv[1:] == ["write"]:
        GOLDEN.parent.mkdir(exist_ok=True)
        lines = ",\n".join(json.dumps(case) for case in cases)
        GOLDEN.write_text('{"samples": ' + json.dumps(SAMPLES) + ',\n"cases": [\n' + lines + "\n]}\n")
        return 0
    known = json.loads(GOLDEN.read_text())
    assert known["samples"] == SAMPLES and [case["name"] for case in known["cases"]] == list(CASES), "write the file again"
    for case, other in zip(cases, known["cases"]):
        for key in ("loss", "gradient"):
            for a, b in zip(numbers_of(case[key]), numbers_of(other[key]), strict=True):
                assert abs(a - b) < 1e-12, f"{case['name']}: {key} is {a}, and was {b}"
    print(f"{len(cases)} cases agree with torch {torch.__version__}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
