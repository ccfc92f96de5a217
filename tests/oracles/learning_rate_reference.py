"""Learning rates of transformers' own schedulers, and other numbers of torch's, for
tests/engine/contract/params/scheduled_number_test.cpp.

    python3 tests/oracles/learning_rate_reference.py write  tests/golden/models/learning_rates.json and scheduled_numbers.json
    python3 tests/oracles/learning_rate_reference.py check  fails if the transformers and torch that are there give other numbers
"""

import json
import pathlib
import sys
import warnings

GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "golden/models"
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


# Keys are those of a scheduled parameter. What rises is a scheduler of what falls, turned around: torch's factors end at 1.
NUMBERS = [
    dict(schedule="linear", iterations=20, **{"from": 0.1, "to": 0.01}),
    dict(schedule="linear", iterations=7, **{"from": 0.2, "to": 0.28}),
    dict(schedule="linear", iterations=200, **{"from": 1.0, "to": 0.6}),
    dict(schedule="linear", iterations=11, **{"from": 0.05, "to": 0.0}),
    dict(schedule="cosine", iterations=20, **{"from": 0.1, "to": 0.01}),
    dict(schedule="cosine", iterations=33, **{"from": 1.0, "to": 0.6}),
    dict(schedule="cosine", iterations=33, **{"from": 0.6, "to": 1.2}),
]


def numbers_of(case):
    """Those of the schedule and of five iterations after it."""
    import torch
    from torch.optim.lr_scheduler import CosineAnnealingLR, LinearLR

    begin, end, over = case["from"], case["to"], case["iterations"]
    top = max(begin, end)
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(1, dtype=torch.float64))],
                                lr=begin if case["schedule"] == "cosine" else top)
    if case["schedule"] == "cosine":
        scheduler = CosineAnnealingLR(optimizer, T_max=over, eta_min=end)
    else:
        scheduler = LinearLR(optimizer, start_factor=begin / top, end_factor=end / top, total_iters=over)
    numbers = []
    for step in range(over + 6):
        numbers.append(optimizer.param_groups[0]["lr"] if step <= over else numbers[-1])  # a cosine would go back
        optimizer.step()
        scheduler.step()
    return numbers


def with_ends(case):
    """A case of learning rates with the keys of a scheduled parameter."""
    given = {key: value for key, value in case.items() if key != "minimum"}
    return dict(given, **{"from": RATE, "to": RATE * case.get("minimum", 0.0)}, numbers=rates_of(case))


def references():
    return {"learning_rates.json": [with_ends(case) for case in CASES],
            "scheduled_numbers.json": [dict(case, numbers=numbers_of(case)) for case in NUMBERS]}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    texts = {name: "[\n" + ",\n".join(json.dumps(case) for case in cases) + "\n]\n" for name, cases in references().items()}
    if sys.argv[1:] == ["write"]:
        for name, text in texts.items():
            (GOLDEN / name).write_text(text)
    elif sys.argv[1:] == ["check"]:
        wrong = [name for name, text in texts.items() if (GOLDEN / name).read_text() != text]
        sys.exit(f"{', '.join(wrong)} in {GOLDEN} not what transformers and torch say now" if wrong else 0)
    else:
        sys.exit(__doc__)
