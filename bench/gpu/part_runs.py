"""Whole runs on the device and on the CPU of the same machine: both learn, and alike. Sampling differs by rounding, so what is
compared is what they come to."""

import pipelines
import peaks
from cases import Case, Failed

SECONDS = 540
# Figure that says what is learned: the share of right answers. Iterations after which it stands.
LEARNED = {"ppo": ("reward/score_mean", 40), "grpo": ("reward/score_mean", 40), "dapo": ("reward/correct_mean", 40)}
FIRST, LAST, RISE, DISTANCE = 3, 10, 0.2, 0.1


def mean(values):
    return sum(values) / len(values)


def learn(name, device):
    figure, iterations = LEARNED[name]
    rows = pipelines.run(name, device, **{"pipeline.iterations": iterations})
    scores = [row[figure] for row in rows]
    found = {"first": mean(scores[:FIRST]), "last": mean(scores[-LAST:])}
    if found["last"] - found["first"] < RISE:
        raise Failed(f"{figure} went from {found['first']:.3f} to {found['last']:.3f} only")
    return found


def compare(answers, ours, theirs):
    if not (answers[ours]["ok"] and answers[theirs]["ok"]):
        raise Failed("one of them did not learn")
    distance = answers[ours]["last"] - answers[theirs]["last"]
    if abs(distance) > DISTANCE:
        raise Failed(f"they are {distance:.3f} apart")
    return {"distance": distance}


def cases(device, answers):
    found, compared = [Case("peaks", 60, lambda: peaks.measure(device))], []
    for name in LEARNED:
        ours, theirs = f"{name} on {device.name}", f"{name} on the CPU"
        found += [Case(ours, 120, lambda name=name: learn(name, device), alone=False),
                  Case(theirs, 60, lambda name=name: learn(name, None), alone=False)]
        compared += [Case(f"{name} learns alike", 5, lambda ours=ours, theirs=theirs: compare(answers, ours, theirs))]
    return found + compared
