#!/usr/bin/env python3
"""Speed of our tokenizer against the `tokenizers` package, on one thread and 10 MB of text.

    PYTHON bench/tokenizers_compare.py PROGRAM DATA [--repetitions N] [--megabytes M] [NAME...]

PYTHON has `tokenizers`. PROGRAM is build/release/bench/programs/tokenizer. DATA holds tokenizers/*/tokenizer.json and
gsm8k/*.jsonl; NAME: tokenizers to compare. Both sides are asked in turn (A B A B) and keep their caches. Prints one JSON object
a line, as bench/report.h describes it; ours and the reference in MB/s. Cases:

text   one text of 10 MB, encode()
fast   the same, encode_batch_fast(), which leaves out offsets as we do
lines  each line by itself, encode()
"""

import argparse
import json
import os
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

os.environ["RAYON_NUM_THREADS"] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

from tokenizers import Tokenizer  # noqa: E402: it reads the environment

OTHER_LANGUAGES = [
    "\u0412\u0441\u0435 \u043b\u044e\u0434\u0438 \u0440\u043e\u0436\u0434\u0430\u044e\u0442\u0441\u044f \u0441\u0432\u043e\u0431\u043e\u0434\u043d\u044b\u043c\u0438 \u0438 \u0440\u0430\u0432\u043d\u044b\u043c\u0438 \u0432 \u0441\u0432\u043e\u0435\u043c \u0434\u043e\u0441\u0442\u043e\u0438\u043d\u0441\u0442\u0432\u0435 \u0438 \u043f\u0440\u0430\u0432\u0430\u0445.",
    "\u4eba\u4eba\u751f\u800c\u81ea\u7531\uff0c\u5728\u5c0a\u4e25\u548c\u6743\u5229\u4e0a\u4e00\u5f8b\u5e73\u7b49\u3002",
    "Tous les \u00eatres humains naissent libres et \u00e9gaux en dignit\u00e9 et en droits.",
    "\u0938\u092d\u0940 \u092e\u0928\u0941\u0937\u094d\u092f\u094b\u0902 \u0915\u094b \u0917\u094c\u0930\u0935 \u0914\u0930 \u0905\u0927\u093f\u0915\u093e\u0930\u094b\u0902 \u0915\u0947 \u092e\u093e\u092e\u0932\u0947 \u092e\u0947\u0902 \u0938\u094d\u0935\u0924\u0928\u094d\u0924\u094d\u0930\u0924\u093e \u092a\u094d\u0930\u093e\u092a\u094d\u0924 \u0939\u0948\u0964",
    "\u064a\u0648\u0644\u062f \u062c\u0645\u064a\u0639 \u0627\u0644\u0646\u0627\u0633 \u0623\u062d\u0631\u0627\u0631\u064b\u0627 \u0645\u062a\u0633\u0627\u0648\u064a\u0646 \u0641\u064a \u0627\u0644\u0643\u0631\u0627\u0645\u0629 \u0648\u0627\u0644\u062d\u0642\u0648\u0642.",
    "\ubaa8\ub4e0 \uc778\uac04\uc740 \ud0dc\uc5b4\ub0a0 \ub54c\ubd80\ud130 \uc790\uc720\ub85c\uc6b0\uba70 \ud3c9\ub4f1\ud558\ub2e4.",
]


def make_text(data, size):
    """Problems and answers with other numbers each time, and one line in six in another language."""
    problems = [json.loads(line) for path in sorted((data / "gsm8k").glob("*.jsonl")) for line in open(path, encoding="utf8")]
    random_stream = random.Random(1)
    lines, length = [], 0
    while length < size:
        problem = random_stream.choice(problems)
        text = problem["question"] + " " + problem["answer"].replace("\n", " ")
        text = "".join(str(random_stream.randrange(10)) if c.isdigit() else c for c in text)
        for line in [text] + [random_stream.choice(OTHER_LANGUAGES)] * (random_stream.random() < 0.2):
            lines.append(line)
            length += len(line.encode()) + 1
    return "\n".join(lines)


class Ours:
    def __init__(self, program, folder, text_file):
        self.process = subprocess.Popen([program, folder, text_file], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, question):
        print(question, file=self.process.stdin, flush=True)
        return json.loads(self.process.stdout.readline())

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Reference:
    def __init__(self, folder, text):
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.tokenizer.no_padding()
        self.tokenizer.no_truncation()
        self.text = text
        self.lines = text.split("\n")

    def seconds(self, case):
        start = time.perf_counter()
        if case == "lines":
            for line in self.lines:
                self.tokenizer.encode(line, add_special_tokens=False)
        elif case == "fast":
            self.tokenizer.encode_batch_fast([self.text], add_special_tokens=False)
        else:
            self.tokenizer.encode(self.text, add_special_tokens=False)
        return time.perf_counter() - start

    def sum(self):
        result = 0
        for id in self.tokenizer.encode(self.text, add_special_tokens=False).ids:
            result = (31 * result + id) % 1_000_000_007
        return result


def line(name, case, ours, reference):
    ratios = [a / b for a, b in zip(ours, reference, strict=True)]
    ratio = statistics.median(ratios)
    speeds = {}
    for side, values in (("ours", ours), ("reference", reference)):
        speeds |= {side: statistics.median(values), f"{side}_low": min(values), f"{side}_high": max(values)}
    rounded = {key: float(f"{value:.4g}") for key, value in (speeds | {"ratio": ratio}).items()}
    return {"bench": "tokenizers_compare", "case": f"{name} {case}", "unit": "MB/s", **rounded, "goal": "ratio >= 1",
            "met": ratio >= 1, "repetitions": len(ours)}


def compare(program, folder, text, text_file, repetitions):
    ours, reference = Ours(program, folder, text_file), Reference(folder, text)
    if ours.ask("sum")["sum"] != reference.sum():
        sys.exit(f"error: {folder.name}: the ids differ")
    megabytes = len(text.encode()) / 1e6
    for case in ("text", "fast", "lines"):
        speeds = {"ours": [], "reference": []}
        for _ in range(repetitions):
            speeds["ours"].append(megabytes / ours.ask("lines" if case == "lines" else "text")["seconds"])
            speeds["reference"].append(megabytes / reference.seconds(case))
        print(json.dumps(line(folder.name, case, speeds["ours"], speeds["reference"])), flush=True)
    ours.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("names", nargs="*", default=["gpt2", "qwen2", "falcon", "phi-3-mini"])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=10)
    options = parser.parse_args()
    text = make_text(options.data, int(options.megabytes * 1e6))
    with tempfile.NamedTemporaryFile("w", encoding="utf8", suffix=".txt") as file:
        file.write(text)
        file.flush()
        for name in options.names:
            compare(options.program, options.data / "tokenizers" / name, text, file.name, options.repetitions)


if __name__ == "__main__":
    main()
