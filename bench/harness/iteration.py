"""Sampled tokens a second of whole iterations: our runs, a trainer of TRL's and the peak of the machine in turn.

Every sample has its full length on both sides. A run of ours is a process that makes a first iteration, which does not count, and
then those that do; the peer is one process that makes an iteration when it is asked, the first of which does not count. The limit
of the machine is its GEMM peak divided by the FLOP of a sampled token: 2N for each pass that decodes or reads, 6N for each that
trains, nothing for attention and prompts."""

import collections
import contextlib
import dataclasses
import pathlib
import statistics
import tempfile

from . import report, runs, shapes
from .workers import PRECISIONS, cores


@dataclasses.dataclass
class Bench:
    name: str
    nodes: str    # of the pipeline
    peer: str     # script
    passes: int   # FLOP of a sampled token, in N
    groups: bool  # the peer samples groups of one prompt
    share_goal: float = 0.7  # of the limit
    peer_goal: float = 3.0   # times the peer at the same precision
    dtypes: tuple = tuple(PRECISIONS)


@dataclasses.dataclass
class Shape:
    size: str
    prompts: int
    samples: int
    new: int
    iterations: int = 1      # of a run of ours that count
    most_rounds: int = 1000  # where a round takes many minutes
    on_request: bool = False  # only with --only

    def name(self):
        return f"{self.size} {self.prompts}x{self.samples}x{self.new}"


def our_rate(pipeline, program, iterations):
    rows, _ = pipeline.run(program, iterations + 1)
    return pipeline.sampled_tokens / statistics.median(row["time/iteration_seconds"] for row in rows[1:])


def peer_arguments(bench, shape, dtype, folder):
    counts = (["--prompts", shape.prompts, "--samples", shape.samples]
              if bench.groups else ["--batch", shape.prompts * shape.samples])
    return ["--model", folder, "--dtype", dtype, *counts, "--new", shape.new, "--threads", cores()]


def measure(bench, shape, setting, dtypes, folder):
    """Rates in tokens a second by (who, dtype), a list over the rounds."""
    program = setting.program("cli/rlhf-run")
    pipelines = {dtype: runs.Pipeline(folder / dtype, shape.size, bench.nodes, dtype, shape.prompts, shape.samples, shape.new)
                 for dtype in dtypes}
    asked = dtypes if setting.has_peers() else []
    rates = collections.defaultdict(list)
    with setting.peak() as peak, contextlib.ExitStack() as stack:
        peers = {dtype: stack.enter_context(
            setting.peer(bench.peer, *peer_arguments(bench, shape, dtype, folder / dtype / "model"))) for dtype in asked}
        for peer in peers.values():
            peer.ask(warm_up=True)
        for _ in range(min(setting.rounds, shape.most_rounds)):
            for dtype in dtypes:
                rates["limit", dtype].append(peak.flops(dtype) / (bench.passes * shapes.parameters(shape.size)))
                rates["ours", dtype].append(our_rate(pipelines[dtype], program, shape.iterations))
                if dtype in peers:
                    rates["peer", dtype].append(shape.prompts * shape.samples * shape.new / peers[dtype].ask()["seconds"])
    return rates


def show(bench, shape, setting, rates, dtypes, narrow_goal):
    for dtype in dtypes:
        case = f"{shape.name()} {PRECISIONS[dtype]}"
        ours, limit = rates["ours", dtype], rates["limit", dtype]
        report.show(bench.name, f"{case}, share of the limit", "sampled tokens/s", ours, limit, at_least=bench.share_goal)
        if ("peer", dtype) in rates:
            report.show(bench.name, f"{case}, TRL", "sampled tokens/s", ours, rates["peer", dtype], at_least=bench.peer_goal)
        else:
            report.missing(bench.name, f"{case}, TRL", setting.without_peers())
    if narrow_goal and all(("peer", dtype) in rates for dtype in ("float32", "bfloat16")):
        better = [max(pair) for pair in zip(rates["peer", "float32"], rates["peer", "bfloat16"], strict=True)]
        case = f"{shape.name()} bf16, the better of TRL's two"
        report.show(bench.name, case, "sampled tokens/s", rates["ours", "bfloat16"], better, at_least=narrow_goal)


def run(bench, shapes_of, setting, narrow_goals):
    """narrow_goals: size -> how many times the better of the peer's two precisions ours in bfloat16 should be."""
    for shape in shapes_of:
        dtypes = [dtype for dtype in bench.dtypes if setting.wants(f"{shape.name()} {PRECISIONS[dtype]}")]
        if not dtypes:
            continue
        if shape.on_request and not setting.only:
            report.missing(bench.name, shape.name(), f"takes long: bench/{bench.name}.py --only '{shape.name()}'")
            continue
        with tempfile.TemporaryDirectory() as folder:
            rates = measure(bench, shape, setting, dtypes, pathlib.Path(folder))
            show(bench, shape, setting, rates, dtypes, narrow_goals.get(shape.size))


def shapes_for(setting, rounds_of_long):
    """8 x 8 x 64 and 16 x 16 x 256 of each size. A round of most takes many minutes: they are made as often as `rounds_of_long`
    says, and those that it does not name only on request."""
    if setting.smoke:
        return [Shape("tiny", 2, 2, 8)]
    short = [Shape("4m", 8, 8, 64, iterations=8), Shape("29m", 8, 8, 64, iterations=3)]
    long = [Shape("4m", 16, 16, 256), Shape("124m", 8, 8, 64), Shape("29m", 16, 16, 256), Shape("124m", 16, 16, 256)]
    for shape in long:
        shape.most_rounds = rounds_of_long.get(shape.name(), 1)
        shape.on_request = shape.name() not in rounds_of_long
    return short if setting.quick else short + long
