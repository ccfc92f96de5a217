#!/usr/bin/env python3
"""How soon does a run begin that has a million rows, and in which memory?

usage: bench/data_start.py PROGRAM TEXTS [--rows N] [--rounds N] [--keep FOLDER]

PROGRAM: build/release/bench/programs/rows. TEXTS: JSON lines with question and answer, such as GSM8K's train.jsonl: each row is
the question of one of them with a number before it, and the answer of another. The same rows are written as JSON lines, plain,
gzip and zstd, and as Parquet and Arrow in several layouts, beside a column that is not read. Each is read in a process of its
own: all rows are proved, then some are drawn in shuffled order. --keep: files that are there are not made again. Needs pyarrow
and zstandard (.deps/oracles/bin/python has them).
"""

import argparse
import gzip
import json
import pathlib
import random
import statistics
import subprocess
import tempfile

import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet
import zstandard

DRAWS = 100_000


def table_of(texts, rows):
    rng = random.Random(1)
    lines = [json.loads(line) for line in open(texts, encoding="utf-8")]
    questions = [f"{number}: {rng.choice(lines)['question']}" for number in range(rows)]
    answers = [rng.choice(lines)["answer"] for _ in range(rows)]
    return pa.table({"question": questions, "answer": answers, "unread": [text[::-1] for text in questions]})


def write_lines(table, path, opened):
    with opened(path) as file:
        for batch in table.select(["question", "answer"]).to_batches(10_000):
            file.write("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in batch.to_pylist()).encode())


def write_stream(table, path):
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, table.schema) as writer:
        writer.write_table(table, max_chunksize=1000)


LAYOUTS = {
    "rows.jsonl": lambda table, path: write_lines(table, path, lambda name: open(name, "wb")),
    "rows.jsonl.gz": lambda table, path: write_lines(table, path, lambda name: gzip.open(name, "wb", compresslevel=6)),
    "rows.jsonl.zst": lambda table, path: write_lines(table, path, lambda name: zstandard.open(name, "wb")),
    "snappy-one-group.parquet": lambda table, path: pa.parquet.write_table(table, path),
    "zstd-100000.parquet": lambda table, path: pa.parquet.write_table(table, path, compression="zstd", row_group_size=100_000),
    "zstd-1000.parquet": lambda table, path: pa.parquet.write_table(table, path, compression="zstd", row_group_size=1000),
    "stream.arrow": write_stream,
    "lz4.feather": lambda table, path: pa.feather.write_feather(table, str(path), compression="lz4"),
}


def measured(program, path, rounds):
    """Of several rounds the median of each number."""
    seen = [json.loads(subprocess.run([program, path, str(DRAWS), "question", "answer"], check=True, stdout=subprocess.PIPE,
                                      text=True).stdout) for _ in range(rounds)]
    return {name: statistics.median(one[name] for one in seen) for name in seen[0]}


def main():
    parser = argparse.ArgumentParser(usage=__doc__.split("usage: ")[1].split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("texts", type=pathlib.Path)
    parser.add_argument("--rows", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--keep", type=pathlib.Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        folder = options.keep or pathlib.Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        table = None
        print("| file | on disk | start | of it processor time | resident at most | without pages of files | a row |")
        print("|---|---|---|---|---|---|---|")
        for name, write in LAYOUTS.items():
            path = folder / name
            if not path.exists():
                table = table if table is not None else table_of(options.texts, options.rows)
                write(table, path)
            of = measured(options.program, path, options.rounds)
            sizes = [f"{of[key] / 1e6:.0f} MB" for key in ("bytes", "anonymous_bytes")]
            start, work, draw = (f"{of['start_seconds']:.2f} s", f"{of['start_processor_seconds']:.2f} s",
                                 f"{of['draw_seconds'] * 1e6:.1f} us")
            print("| " + " | ".join([f"`{name}`", f"{path.stat().st_size / 1e6:.0f} MB", start, work, *sizes, draw]) + " |",
                  flush=True)


if __name__ == "__main__":
    main()
