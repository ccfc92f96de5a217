"""What is measured of a device, one function a question. Each has the medians of some repetitions, and what share of the card's
peaks that is where these were measured before (`peaks`: the answer of that case; empty: they were not)."""

import importlib.util
import sys

import programs
from place import ROOT

ELEMENT_BYTES = {"bfloat16": 2, "float32": 4}


def shares(peaks, dtype, bytes_per_second=None, flops=None):
    if "flops" not in peaks:
        return {}
    found = {"of_memory_peak": bytes_per_second / peaks["bytes_per_second"]} if bytes_per_second else {}
    return found | ({"of_gemm_peak": flops / peaks["flops"][dtype]} if flops else {})


def attention(device, peaks, folder, sequences, context, heads=32, kv_heads=8, head_dim=128, dtype="bfloat16", times=20):
    """Of one new token a sequence: bytes are those of keys and values, each read once."""
    with programs.asked("device_operations", *device.for_bench()) as bench:
        answer = bench.ask(ask="attention", sequences=sequences, context=context, heads=heads, kv_heads=kv_heads,
                           head_dim=head_dim, dtype=dtype, times=times)
    ours, library = programs.median(answer["seconds"]), programs.median(answer["library"])
    rate = 2 * sequences * context * kv_heads * head_dim * ELEMENT_BYTES[dtype] / ours
    return ({"microseconds": ours * 1e6, "library_microseconds": library * 1e6, "bytes_per_second": rate} |
            shares(peaks, dtype, bytes_per_second=rate))


def product(device, peaks, folder, rows, inputs, outputs, times=20):
    """Of few rows with a matrix, which is read once: by our kernel where there is one, and by the library."""
    with programs.asked("device_operations", *device.for_bench()) as bench:
        answer = bench.ask(ask="product", rows=rows, inputs=inputs, outputs=outputs, times=times)
    ours, library = (programs.median(answer[name]) if name in answer else None for name in ("seconds", "library"))
    rate = inputs * outputs * ELEMENT_BYTES["bfloat16"] / (ours or library)
    return ({**({"microseconds": ours * 1e6} if ours else {}), "library_microseconds": library * 1e6, "bytes_per_second": rate} |
            shares(peaks, "bfloat16", bytes_per_second=rate))


def logprobs(device, peaks, folder, actions, hidden, vocabulary, backward, dtype="bfloat16", times=5):
    """FLOP are those of the products that nobody can do without: one forward, two backward."""
    with programs.asked("device_operations", *device.for_bench()) as bench:
        answer = bench.ask(ask="logprobs", actions=actions, hidden=hidden, vocabulary=vocabulary, backward=backward, dtype=dtype,
                           times=times)
    seconds = programs.median(answer["seconds"])
    rate = 2 * actions * hidden * vocabulary * (3 if backward else 1) / seconds
    return {"milliseconds": seconds * 1e3, "flops": rate} | shares(peaks, dtype, flops=rate)


def publication(device, peaks, folder, size, dtype="bfloat16", times=10):
    """Live weights in float32 are read, and the version that is sampled from is written."""
    from harness import shapes
    with programs.asked("device_operations", *device.for_bench()) as bench:
        answer = bench.ask(ask="publish", model=str(shapes.write_model(folder / size, size)), dtype=dtype, times=times)
    seconds = programs.median(answer["seconds"])
    rate = answer["parameters"] * (ELEMENT_BYTES["float32"] + ELEMENT_BYTES[dtype]) / seconds
    return ({"milliseconds": seconds * 1e3, "parameters": answer["parameters"], "bytes_per_second": rate} |
            shares(peaks, dtype, bytes_per_second=rate))


def peer(script, model, dtype, device, questions):
    """The seconds of each question, asked twice; [] where it is not asked, or transformers cannot be imported."""
    if not (device.is_gpu and device.peers) or importlib.util.find_spec("transformers") is None:
        return []
    from harness.workers import Worker
    options = ["--model", model, "--dtype", dtype, "--threads", programs.cores(), "--device", device.name]
    with Worker([sys.executable, ROOT / "bench/peers" / script, *options], {"HF_HUB_OFFLINE": "1"}) as other:
        return [[other.ask(**question) for _ in range(2)][-1]["seconds"] for question in questions]


def decoding(device, peaks, folder, size, batches, context, steps, dtype="bfloat16", times=3):
    """Of each batch the tokens a second; bytes are those of matrices and of the cache, which every step reads once."""
    from harness import shapes
    model = shapes.write_model(folder / size, size, positions=context + 2 * steps)
    questions = [dict(batch=batch, context=context, steps=steps) for batch in batches]
    with programs.asked("generation", model, dtype, programs.cores(), *device.for_bench()) as bench:
        ours = [programs.median([bench.ask(ask="decode", **question)["seconds"] for _ in range(times)]) for question in questions]
    figures = {}
    for batch, seconds in zip(batches, ours):
        read = ELEMENT_BYTES[dtype] * (shapes.parameters(size) + batch * (context + steps // 2) * shapes.cached_values(size))
        figures[f"tokens_per_second_{batch}"] = batch * steps / seconds
        figures |= {f"{key}_{batch}": value
                    for key, value in shares(peaks, dtype, bytes_per_second=read * steps / seconds).items()}
    theirs = peer("generate.py", model, dtype, device, questions)
    return figures | {f"times_transformers_{batch}": other / seconds for batch, other, seconds in zip(batches, theirs, ours)}


def training(device, peaks, folder, size, tokens, length, dtype="bfloat16", times=3):
    """One step on packed samples, forward, backward and AdamW."""
    from harness import shapes
    model = shapes.write_model(folder / size, size, positions=length)
    question = dict(tokens=tokens, length=length)
    with programs.asked("training", model, dtype, programs.cores(), *device.for_bench()) as bench:
        bench.ask(**question)
        seconds = programs.median([bench.ask(**question)["seconds"] for _ in range(times)])
    theirs = peer("train.py", model, dtype, device, [question])
    return {"tokens_per_second": tokens / seconds, "milliseconds": seconds * 1e3,
            **({"times_transformers": theirs[0] / seconds} if theirs else {}),
            **shares(peaks, dtype, flops=tokens * shapes.training_flop(size, length) / seconds)}
