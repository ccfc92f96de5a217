#!/usr/bin/env python3
"""Does a model of half a billion parameters train fast, and in the memory that it must take?

usage: bench/real_sizes.py [--smoke | --quick] [--build FOLDER] [--peers FOLDER] [--rounds N] [--only TEXT]

Random weights in the shapes of Qwen2.5-0.5B and Qwen2.5-1.5B, and of 124 million parameters for the memory alone, bfloat16. Time:
GRPO iterations against TRL and the limit of the machine, as grpo_iteration has them. Memory: GRPO with a frozen reference. What
must be there are, in bytes a parameter, 4 of weights, 2 of what is published, 2 of the reference, 4 of gradients and 8 of
moments; with LoRA 2 of the base, which is the reference too, and 2 of what is published; where that base is quantised to 4 bits
little more than half a byte, which what is published shares. The most memory that the process had is compared with that sum and
with the plan, class by class."""

import pathlib
import tempfile

from harness import iteration, report, runs, shapes
from harness.workers import Setting

SHARE_GOAL, PEER_GOAL = 0.75, 4.5
MOST_OF_SUM, MOST_OFF_PLAN = {"0.5b": 1.15}, 0.05  # by size: of smaller models the program itself is a large part
OTHER_SHARE, OTHER_BYTES = 0.03, 150e6
NO_COPY = '\n[checkpoint]\ncopy = "none"\n'
LORA = "lora = { rank = 16, alpha = 32 }\n"
QLORA = LORA + 'quantization = "int4"\n'
LORA_MOST, QLORA_MOST = 8e9, 4e9
BYTES = 4 + 2 + 2 + 4 + 8


def times(setting):
    if setting.smoke:
        shapes_of = [iteration.Shape("tiny", 2, 2, 8)]
    else:
        shapes_of = [iteration.Shape("0.5b", 4, 4, 128), iteration.Shape("0.5b", 8, 8, 256, on_request=True)]
    bench = iteration.Bench("real_sizes", runs.GRPO, "grpo.py", passes=8, groups=True, share_goal=SHARE_GOAL, peer_goal=PEER_GOAL,
                            dtypes=("bfloat16",))
    iteration.run(bench, shapes_of, setting, narrow_goals={})


def memory_of(setting, size, samples, new, pass_tokens, of_trained, iterations=1):
    """The memory report of a run."""
    with tempfile.TemporaryDirectory() as folder:
        pipeline = runs.Pipeline(pathlib.Path(folder), size, runs.GRPO_WITH_REFERENCE, "bfloat16", samples, samples, new,
                                 of_trained=of_trained, tables=NO_COPY, pass_tokens=pass_tokens)
        pipeline.run(setting.program("cli/rlhf-run"), iterations=iterations)
        return pipeline.memory


def show_classes(case, memory):
    """Each class and the total against the plan; what is in no class against its bound."""
    for of in memory["classes"]:
        name, planned, peak = of["name"], of["planned_bytes"] / 1e6, of["peak_bytes"] / 1e6
        if name == "other":
            most = (OTHER_SHARE * memory["peak_bytes"] + OTHER_BYTES) / 1e6
            report.show("real_sizes", f"{case}, other", "MB", [peak], [most], at_most=1)
        elif planned > 0 and name != "columns":
            report.show("real_sizes", f"{case}, {name} of plan", "MB", [peak], [planned], at_least=1 - MOST_OFF_PLAN,
                        at_most=1 + MOST_OFF_PLAN)
    report.show("real_sizes", f"{case}, resident of plan", "MB", [memory["peak_bytes"] / 1e6], [memory["planned_bytes"] / 1e6],
                at_least=1 - MOST_OFF_PLAN, at_most=1 + MOST_OFF_PLAN)


def memory(setting):
    full, adapters, samples, new = (["tiny"], "tiny", 2, 8) if setting.smoke else (["124m", "0.5b"], "1.5b", 4, 128)
    length = shapes.PROMPT_TOKENS + new
    for size in full:
        if not setting.wants(case := f"{size} bf16 memory"):
            continue
        found = memory_of(setting, size, samples, new, 2 * samples * length, "")
        needed = BYTES * shapes.SIZES[size].all_parameters()
        report.show("real_sizes", f"{case}, resident of the sum", "MB", [found["peak_bytes"] / 1e6], [needed / 1e6],
                    at_most=MOST_OF_SUM.get(size))
        show_classes(case, found)
    for kind, of_trained, most, iterations in (("bf16 LoRA", LORA, LORA_MOST, 1), ("int4 LoRA", QLORA, QLORA_MOST, 2)):
        if not setting.wants(case := f"{adapters} {kind} memory"):
            continue
        found = memory_of(setting, adapters, samples, new, samples * length, of_trained, iterations)
        report.show("real_sizes", f"{case}, resident", "MB", [found["peak_bytes"] / 1e6], [most / 1e6], at_most=1)
        show_classes(case, found)


if __name__ == "__main__":
    everything = Setting(__doc__, rounds=3)
    memory(everything)
    times(everything)
