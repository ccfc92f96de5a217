#!/usr/bin/env python3
"""Speed of our tokenizer against the `tokenizers` package, on one thread and 10 MB of text.

    PYTHON bench/tokenizers_compare.py PROGRAM DATA [--repetitions N] [--megabytes M] [NAME...]

PYTHON has `tokenizers`. PROGRAM is build/release/bench/programs/tokenizer. DATA holds tokenizers/*/tokenizer.json and
gsm8k/*.jsonl; NAME: tokenizers to compare. `t5-like` and `bert-like` are made here: Unigram and WordPiece vocabularies of
8000 tokens trained on GSM8K, with the normalizers and pre-tokenizers of T5 and of BERT (uncased); they need `sentencepiece`.
Both sides are asked in turn (A B A B) and keep their caches. Prints one JSON object a line, as bench/report.h describes it;
ours and the reference in MB/s. Cases:

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

from tokenizers import Tokenizer, normalizers, pre_tokenizers, trainers  # noqa: E402: it reads the environment
from tokenizers.models import WordPiece  # noqa: E402

ORACLES = pathlib.Path(__file__).resolve().parent.parent / "tests" / "oracles"
MADE = ["t5-like", "bert-like"]

OTHER_LANGUAGES = [
    "Все люди рождаются свободными и равными в своем достоинстве и правах.",
    "人人生而自由，在尊严和权利上一律平等。",
    "Tous les êtres humains naissent libres et égaux en dignité et en droits.",
    "सभी मनुष्यों को गौरव और अधिकारों के मामले में स्वतन्त्रता प्राप्त है।",
    "يولد جميع الناس أحرارًا متساوين في الكرامة والحقوق.",
    "모든 인간은 태어날 때부터 자유로우며 평등하다.",
]


def read_problems(data):
    return [json.loads(line) for path in sorted((data / "gsm8k").glob("*.jsonl")) for line in open(path, encoding="utf8")]


def make_tokenizer(name, data):
    sys.path.insert(0, str(ORACLES))
    import word_model_samples
    texts = [problem["question"] + " " + problem["answer"] for problem in read_problems(data)]
    if name == "t5-like":
        return word_model_samples.t5(texts, "nmt_nfkc", vocab_size=8000)
    trained = Tokenizer(WordPiece(unk_token="[UNK]"))
    trained.normalizer = normalizers.BertNormalizer()
    trained.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    trainer = trainers.WordPieceTrainer(vocab_size=8000, special_tokens=["[UNK]"], show_progress=False)
    trained.train_from_iterator(texts, trainer)
    return word_model_samples.word_piece(sorted(trained.get_vocab()), normalizers.BertNormalizer())


def make_text(data, size):
    """Problems and answers with other numbers each time, and one line in six in another language."""
    problems = read_problems(data)
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
    parser.add_argument("names", nargs="*", default=["gpt2", "qwen2", "falcon", "phi-3-mini", *MADE])
    parser.add_argument("--repetitions", type=int, default=5)
    parser.add_argument("--megabytes", type=float, default=10)
    options = parser.parse_args()
    text = make_text(options.data, int(options.megabytes * 1e6))
    with tempfile.NamedTemporaryFile("w", encoding="utf8", suffix=".txt") as file:
        file.write(text)
        file.flush()
        for name in options.names:
            with tempfile.TemporaryDirectory() as folder:
                path = options.data / "tokenizers" / name
                if name in MADE:
                    path = pathlib.Path(folder) / name
                    path.mkdir()
                    make_tokenizer(name, options.data).save(str(path / "tokenizer.json"))
                compare(options.program, path, text, file.name, options.repetitions)


if __name__ == "__main__":
    main()
