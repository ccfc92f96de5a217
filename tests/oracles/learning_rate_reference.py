"""Learning rates of transformers' own schedulers, for tests/models/train/learning_rate_test.cpp.

    python3 tests/oracles/learning_rate_reference.py write    tests/golden/models/learning_rates.json, with transformers and torch
    python3 tests/oracles/learning_rate_reference.py check    fails if the transformers that is there gives other numbers
"""

import json
import pathlib
import sys
import warnings

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/models/learning_rates.json"
RATE = 3e-4

# Keys are those of [models.NAME] optimizer; warm-up and decay may be shares of the iterations, as in TrainingArguments.
CASES = [
    dict(schedule="constant", iterations=12, warmup=5),
    dict(schedule="constant", iterations=12, warmup=0.3),
    dict(schedule="linear", iterations=20, warmup=0),
    dict(schedule="linear", iterations=20, warmup=4),
    dict(schedule="linear", iterations=20, warmup=0.1, minimum=0.1),
    dict(schedule="linear", iterations=3, warmup=5),
    dict(schedule="cosine", iterations=20, warmup=0),
    dict(schedule="cosine", iterations=21, warmup=0.03),
    dict(schedule="cosine", iterations=21, warmup=3, minimum=0.1),
    dict(schedule="wsd", iterations=20, warmup=4, decay=6),
    dict(schedule="wsd", iterations=20, warmup=0.1, decay=0.33, minimum=0.2),
    dict(schedule="wsd", iterations=20, warmup=0, decay=5, decay_shape="linear"),
    dict(schedule="wsd", iterations=20, warmup=3, decay=17, decay_shape="1-sqrt", minimum=0.05),
]


def steps_of(given, iterations):
    from transformers import TrainingArguments

    return TrainingArguments.get_warmup_steps(type("Arguments", (), {"warmup_steps": given}), iterations)


def scheduler_of(case, optimizer):
    import transformers.optimization as known

    iterations, least = case["iterations"], case.get("minimum", 0.0)
    warmup, decay = steps_of(case["warmup"], iterations), steps_of(case.get("decay", 0), iterations)
    if case["schedule"] == "constant":
        return known.get_constant_schedule_with_warmup(optimizer, warmup)
    if case["schedule"] == "linear" and least > 0:
        return known.get_polynomial_decay_schedule_with_warmup(optimizer, warmup, iterations, lr_end=RATE * least, power=1.0)
    if case["schedule"] == "linear":
        return known.get_linear_schedule_with_warmup(optimizer, warmup, iterations)
    if case["schedule"] == "cosine" and least > 0:
        return known.get_cosine_with_min_lr_schedule_with_warmup(optimizer, warmup, iterations, min_lr_rate=least)
    if case["schedule"] == "cosine":
        return known.get_cosine_schedule_with_warmup(optimizer, warmup, iterations)
    return known.get_wsd_schedule(optimizer, warmup, decay, num_training_steps=iterations, min_lr_ratio=least,
                                  decay_type=case.get("decay_shape", "cosine"))


def rates_of(case):
    import torch

    optimizer = torch.optim.AdamW([torch.nn.Parameter(torch.zeros(1))], lr=RATE)
    scheduler, rates = scheduler_of(case, optimizer), []
    for _ in range(case["iterations"]):
        rates.append(optimizer.param_groups[0]["lr"])
        optimizer.step()
        scheduler.step()
    return rates


def reference():
    return [dict(case, learning_rate=RATE, rates=rates_of(case)) for case in CASES]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    text = "[\n" + ",\n".join(json.dumps(case) for case in reference()) + "\n]\n"
    if sys.argv[1:] == ["write"]:
        GOLDEN.write_text(text)
    elif sys.argv[1:] == ["check"]:
        sys.exit(0 if GOLDEN.read_text() == text else f"{GOLDEN} is not what transformers says now")
    else:
        sys.exit(__doc__)
