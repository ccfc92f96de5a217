"""What bench/report.h is for C++: one JSON object a line, which bench/run reads."""

import json
import statistics


def rounded(value):
    """Four digits that count: more would be noise."""
    return float(f"{value:.4g}")


def median_and_spread(name, values):
    return {name: rounded(statistics.median(values)), f"{name}_low": rounded(min(values)), f"{name}_high": rounded(max(values))}


def show(bench, case, unit, ours, reference, at_least=None, at_most=None):
    """One case: `ours` and `reference` were measured in turn, entry i of both in one round. The bounds are those of the ratio's
    median."""
    ratio = statistics.median([a / b for a, b in zip(ours, reference, strict=True)])
    bounds = [f"ratio {sign} {bound:g}" for sign, bound in ((">=", at_least), ("<=", at_most)) if bound is not None]
    met = (at_least is None or ratio >= at_least) and (at_most is None or ratio <= at_most)
    line = {"bench": bench, "case": case, "unit": unit, **median_and_spread("ours", ours),
            **median_and_spread("reference", reference), "ratio": rounded(ratio), "goal": ", ".join(bounds) or None,
            "met": met if bounds else None, "repetitions": len(ours)}
    print(json.dumps(line), flush=True)


def missing(bench, case, reason):
    """A row that this run has no figures for."""
    print(json.dumps({"bench": bench, "case": case, "missing": reason}), flush=True)
