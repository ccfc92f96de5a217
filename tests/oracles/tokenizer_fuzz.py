#!/usr/bin/env python3
"""Compares our tokenizer with the `tokenizers` package on random text and random ids.

    python tests/oracles/tokenizer_fuzz.py PROGRAM [DATA] [--count N] [--seed S] [--only NAME]

PROGRAM is sluice_tokenizer_lines. DATA holds tokenizers/*/tokenizer.json (default: SLUICE_TEST_DATA, or shared/data beside the
checkout); small tokenizers of the other families are made here. Ends with 1 at a difference.
"""

import argparse
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


def answers(program, folder, questions):
    """One answer a question; they go through files, so that neither side waits for the other."""
    asked, answered = folder / "questions.jsonl", folder / "answers.jsonl"
    asked.write_text("".join(json.dumps(question) + "\n" for question in questions), encoding="utf8")
    with open(asked, "rb") as source, open(answered, "wb") as sink:
        done = subprocess.run([program, folder], stdin=source, stdout=sink, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"error: {program} ended with {done.returncode}: {done.stderr}")
    with open(answered, encoding="utf8") as lines:
        return [json.loads(line) for line in lines]


def random_ids(random_stream, size):
    """Ids with runs of neighbours, as byte tokens are."""
    ids = [random_stream.randrange(size) for _ in range(random_stream.choice([1, 3, 8, 20]))]
    return [min(id + step, size - 1) for id in ids for step in range(random_stream.choice([1, 1, 2, 3]))]


def expected(tokenizer, question):
    if isinstance(question, str):
        ids = tokenizer.encode(question).ids
        return {"ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
    return {"decoded": tokenizer.decode(question, skip_special_tokens=False), "skipped": tokenizer.decode(question)}


def compare(program, name, text, count, random_stream):
    """The number of questions that are answered otherwise."""
    from tokenizers import Tokenizer
    from tokenizer_samples import random_text
    tokenizer = Tokenizer.from_str(text)
    tokenizer.no_padding()
    tokenizer.no_truncation()
    size = tokenizer.get_vocab_size()
    questions = [random_text(random_stream) for _ in range(count)]
    questions += [random_ids(random_stream, size) for _ in range(count // 4)]
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "tokenizer.json").write_text(text, encoding="utf8")
        given = answers(program, pathlib.Path(folder), questions)
    wrong = 0
    for question, answer in zip(questions, given, strict=True):
        right = expected(tokenizer, question)
        if answer != right:
            wrong += 1
            if wrong <= 3:
                print(f"  {name}: {json.dumps(question)}\n    expected {json.dumps(right)}\n    given    {json.dumps(answer)}")
    print(f"{name}: {len(questions)} questions, {wrong} differences", flush=True)
    return wrong


def tokenizer_files(data, random_stream):
    """(name, text) of every tokenizer.json."""
    from tokenizer_samples import large_tokenizers, small_tokenizers
    paths = sorted(pathlib.Path(data).glob("tokenizers/*/tokenizer.json"))
    if not paths:
        print(f"no tokenizers of real models: {data}/tokenizers is missing; set SLUICE_TEST_DATA")
        if os.environ.get("CI") == "true":
            sys.exit(1)
    for path in paths:
        yield path.parent.name, path.read_text(encoding="utf8")
    for make in (small_tokenizers, large_tokenizers):
        for name, tokenizer in make(random_stream):
            yield name, tokenizer.to_str()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("data", nargs="?", default=os.environ.get("SLUICE_TEST_DATA", str(ROOT.parent / "shared" / "data")))
    parser.add_argument("--count", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    options = parser.parse_args()
    random_stream = random.Random(options.seed)
    wrong = 0
    for name, text in tokenizer_files(options.data, random_stream):
        if options.only in (None, name):
            wrong += compare(options.program, name, text, options.count, random_stream)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
