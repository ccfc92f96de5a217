#!/usr/bin/env python3
"""Do the ready pipelines learn, with every seed? One table, and a curve of each.

    python3 bench/learning.py [--seeds 1-5] [--svg docs/curves] [--set KEY=VALUE ... [--name NAME]] grpo rloo dapo ppo
    python3 bench/learning.py --metric policy/loss sft
    python3 bench/learning.py --schedules [--seeds 1-3] [--set KEY=VALUE ...] grpo

Runs pipelines/NAME.toml from the shipped model with each seed, one run after the other, and evaluates what was learned on the
held-out sums. Prints a line a run: mean score of the first 3 and the last 10 iterations, the greedy accuracy on sums that were
never practised, seconds. With --svg draws the score over the iterations, every seed a line. With --metric another metric of
metrics.jsonl stands for the score, and nothing is evaluated.

With --schedules each pipeline runs with a policy lag of 0, 1 and 2, and with `update = "immediately"`, one seed after the other,
in turn. All have the same number of iterations, so "last 10" and "held out" compare them at equal samples. "at the time" compares
them at equal seconds: the mean score of the ten iterations that were the last when the quickest of them with that seed was done,
and "of samples" how many each had sampled by then. Seconds are those of the iterations then, without loading and saving.
"updates": how often samples that ran went on with newer weights.
"""

import argparse
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))


def rows_of(pipeline, folder, overrides):
    arguments = [PROGRAM, str(ROOT / "pipelines" / f"{pipeline}.toml"), "--run-dir", str(folder)]
    for override in overrides:
        arguments += ["--set", override]
    done = subprocess.run(arguments, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(arguments)}\n{done.stderr}")
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


SCHEDULES = {"lag 0": ["schedule.policy_lag=0"], "lag 1": ["schedule.policy_lag=1"], "lag 2": ["schedule.policy_lag=2"],
             "immediately": ["schedule.policy_lag=1", "schedule.update=immediately"]}


def scores_of(rows):
    """`correct` where the score is more than being right."""
    return [row.get("reward/correct_mean", row["reward/score_mean"]) for row in rows]


def at_the_time(rows, seconds):
    """The score of the last ten iterations that ended within so many seconds, and the samples up to then."""
    ends = itertools.accumulate(row["time/iteration_seconds"] for row in rows)
    done = [row for row, end in zip(rows, ends) if end <= seconds]
    scores = scores_of(done)[-10:]
    return sum(scores) / len(scores), sum(row["data/samples"] for row in done)


def compare_schedules(pipeline, seeds, overrides):
    print(f"{pipeline:14} {'seed':>4} {'first 3':>8} {'last 10':>8} {'held out':>8} {'samples':>8} {'seconds':>8} "
          f"{'at the time':>11} {'of samples':>10} {'updates':>8}")
    for seed in seeds:
        with tempfile.TemporaryDirectory() as name:
            runs = {schedule: one_run(pipeline, seed, overrides + of, pathlib.Path(name) / f"{pipeline}-{number}", None)
                    for number, (schedule, of) in enumerate(SCHEDULES.items())}
        seconds = {schedule: sum(row["time/iteration_seconds"] for row in run["rows"]) for schedule, run in runs.items()}
        for schedule, run in runs.items():
            score, samples = at_the_time(run["rows"], min(seconds.values()) * (1 + 1e-9))
            updates = sum(row.get("engine/weight_updates", 0) for row in run["rows"])
            print(f"{schedule:14} {seed:4} {run['first']:8.3f} {run['last']:8.3f} {run['accuracy']:8.3f} {run['samples']:8.0f} "
                  f"{seconds[schedule]:8.1f} {score:11.3f} {samples:10.0f} {updates:8.0f}", flush=True)


def one_run(pipeline, seed, overrides, folder, metric):
    started = time.monotonic()
    rows = rows_of(pipeline, folder, [f"pipeline.seed={seed}", *overrides])
    seconds = time.monotonic() - started
    if metric:
        scores = [row[metric] for row in rows if metric in row]
        return {"rows": rows, "scores": scores, "first": sum(scores[:3]) / 3, "last": sum(scores[-10:]) / 10,
                "accuracy": float("nan"), "samples": sum(row["data/samples"] for row in rows), "seconds": seconds}
    held_out = rows_of("evaluate", folder.with_name(folder.name + "-held-out"),
                       [f"models.policy.checkpoint={folder}/checkpoint/actor"])
    scores = scores_of(rows)
    return {"rows": rows, "scores": scores, "first": sum(scores[:3]) / 3, "last": sum(scores[-10:]) / 10,
            "accuracy": held_out[0]["reward/score_mean"], "samples": sum(row["data/samples"] for row in rows), "seconds": seconds}


def svg(title, curves):
    """A line a run over the iterations, smoothed over five of them."""
    width, height, left, top = 640, 320, 56, 30
    longest = max(len(curve) for curve in curves)
    low, high = min(0.0, *map(min, curves)), max(1.0, *map(max, curves))
    colours = ("#1b6ca8", "#c0392b", "#2e8b57", "#8e5ea2", "#b8860b")

    def place(i, value):
        x = left + (width - left - 16) * i / max(1, longest - 1)
        y = top + (height - top - 40) * (high - value) / (high - low)
        return f"{x:.1f},{y:.1f}"

    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
             'font-family="sans-serif" font-size="12">', f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{left}" y="18" font-weight="bold">{title}</text>']
    for fifth in range(6):
        value = low + (high - low) * fifth / 5
        x, y = place(0, value).split(",")
        lines.append(f'<line x1="{x}" y1="{y}" x2="{width - 16}" y2="{y}" stroke="#dddddd"/>')
        lines.append(f'<text x="{left - 8}" y="{float(y) + 4:.1f}" text-anchor="end">{value:.3g}</text>')
    for part in range(5):
        i = round((longest - 1) * part / 4)
        lines.append(f'<text x="{place(i, low).split(",")[0]}" y="{height - 22}" text-anchor="middle">{i + 1}</text>')
    lines.append(f'<text x="{width / 2}" y="{height - 6}" text-anchor="middle">iteration</text>')
    for number, curve in enumerate(curves):
        smooth = [sum(curve[max(0, i - 4):i + 1]) / len(curve[max(0, i - 4):i + 1]) for i in range(len(curve))]
        points = " ".join(place(i, score) for i, score in enumerate(smooth))
        lines.append(f'<polyline points="{points}" fill="none" stroke="{colours[number % len(colours)]}" stroke-width="1.5"/>')
    return "\n".join(lines) + "\n</svg>\n"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pipelines", nargs="+")
    parser.add_argument("--seeds", default="1-5", help="FIRST-LAST")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="as rlhf-run takes it")
    parser.add_argument("--metric", help="of metrics.jsonl, instead of the score")
    parser.add_argument("--svg", type=pathlib.Path, help="folder for the curves")
    parser.add_argument("--name", help="of the runs in the table and of the curve's file; by default the pipeline's")
    parser.add_argument("--schedules", action="store_true", help="compare policy lags and update = \"immediately\"")
    options = parser.parse_args()
    first, _, last = options.seeds.partition("-")
    seeds = range(int(first), int(last or first) + 1)
    if options.schedules:
        for pipeline in options.pipelines:
            compare_schedules(pipeline, seeds, options.set)
        return
    print(f"{'pipeline':14} {'seed':>4} {'first 3':>8} {'last 10':>8} {'held out':>8} {'samples':>8} {'seconds':>8}")
    for pipeline in options.pipelines:
        curves = []
        with tempfile.TemporaryDirectory() as folder:
            for seed in seeds:
                run = one_run(pipeline, seed, options.set, pathlib.Path(folder) / f"{pipeline}-{seed}", options.metric)
                curves.append(run["scores"])
                print(f"{options.name or pipeline:14} {seed:4} {run['first']:8.3f} {run['last']:8.3f} {run['accuracy']:8.3f} "
                      f"{run['samples']:8.0f} {run['seconds']:8.1f}", flush=True)
        if options.svg:
            options.svg.mkdir(parents=True, exist_ok=True)
            name = options.name or pipeline
            (options.svg / f"{name}.svg").write_text(svg(f"{name}: {options.metric or 'share of right answers'} in each "
                                                         f"iteration, seeds {options.seeds}", curves))


if __name__ == "__main__":
    main()
