#!/usr/bin/env python3
"""How fast do columns go from one process to another?

usage: bench/transport.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

A batch of 256 prompts x 16 samples x 8,192 tokens, 36 bytes a token in eight columns, from one process to another of this
machine: a parcel for each prompt, of which four are granted at a time. Parcels (comm/parcels/) over shared memory and over TCP,
in turn with what they are compared with: the same columns as arrays in a pickled multiprocessing pipe, the same bytes through a
pipe, the same bytes as padded tensors that Gloo brings over a third rank, and a copy of the same bytes between mapped shared
memory by one thread.

Then what is resident beside the batch while it is under way, against the credit and two chunks; and of a batch four times as
large."""

import array
import concurrent.futures
import contextlib
import fcntl
import multiprocessing
import os
import socket
import time

from harness import report
from harness.workers import Setting, Worker

MIB = 1 << 20
TOKEN_BYTES = 36
DISTINCT = 8  # groups that the peers send in turn: more than the caches hold
WIRES = {"shared memory": "memory", "TCP": "stream"}


class Ranks:
    """Three processes of bench/transport.cpp, which are asked at the same time."""

    def __init__(self, program, sizes):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        self.workers = [Worker([program, rank, port, *sizes]) for rank in range(3)]
        self.pool = concurrent.futures.ThreadPoolExecutor(len(self.workers))

    def ask(self, **question):
        return list(self.pool.map(lambda worker: worker.ask(**question), self.workers))

    def close(self):
        for worker in self.workers:
            worker.close()


def receive_pickled(connection, groups):
    while connection.recv_bytes():
        for _ in range(groups):
            connection.recv()
        connection.send_bytes(b"all")


def receive_raw(reading, connection, total, piece):
    place = memoryview(bytearray(piece))
    while connection.recv_bytes():
        left = total
        while left:
            left -= os.readv(reading, [place[:min(left, piece)]])
        connection.send_bytes(b"all")


class Peer:
    """Another process that takes all that is sent, and says when it has it."""

    def __init__(self, target, arguments, send_all):
        self.connection, other = multiprocessing.Pipe()
        self.process = multiprocessing.Process(target=target, args=[*arguments(other)], daemon=True)
        self.process.start()
        self.send_all = send_all

    def seconds(self):
        begin = time.perf_counter()
        self.connection.send_bytes(b"go")
        self.send_all(self.connection)
        self.connection.recv_bytes()
        return time.perf_counter() - begin

    def close(self):
        self.process.kill()
        self.process.join()


def columns_of(tokens):
    """A group as a program in Python may have it."""
    return {"tokens": array.array("q", bytes(8 * tokens)),
            **{f"column_{i}": array.array("f", bytes(4 * tokens)) for i in range(7)}}


def pickled_pipe(groups, tokens):
    data = [columns_of(tokens) for _ in range(min(groups, DISTINCT))]

    def send_all(connection):
        for i in range(groups):
            connection.send(data[i % len(data)])

    return Peer(receive_pickled, lambda connection: (connection, groups), send_all)


def raw_pipe(groups, tokens):
    size = tokens * TOKEN_BYTES
    data = [bytes(size) for _ in range(min(groups, DISTINCT))]
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, MIB)  # a small one is slower where the two have a core each

    def send_all(_):
        for i in range(groups):
            left = memoryview(data[i % len(data)])
            while left:
                left = left[os.write(writing, left):]

    return Peer(receive_raw, lambda connection: (reading, connection, groups * size, min(size, MIB)), send_all)


def show_speed(case, rates, wire):
    for reference, bound in (("a memory copy", 0.6 if wire == "shared memory" else None),
                             ("a pickled pipe", 100 if wire == "shared memory" else 14), ("a pipe", None),
                             ("padded tensors over a third rank by Gloo", None)):
        report.show("transport", f"{case} over {wire}, against {reference}", "GB/s", rates[wire], rates[reference],
                    at_least=bound)


def show_memory(case, ranks):
    for wire, name in WIRES.items():
        extra = {}
        for times in (1, 4):
            answers = ranks.ask(ask="memory of parcels", wire=name, times=times)
            credit = answers[2]["credit_bytes"] + 2 * MIB
            extra[times] = [answers[1]["extra_bytes"], answers[2]["extra_bytes"]]
            for who, value in zip(("sender", "receiver"), extra[times]):
                report.show("transport", f"{case} x{times} over {wire}, resident beside it, {who} against credit and 2 chunks",
                            "MB", [value / 1e6], [credit / 1e6], at_most=1)


def main():
    setting = Setting(__doc__, rounds=7)
    prompts, samples, tokens = (2, 2, 64) if setting.smoke else (64, 16, 8192) if setting.quick else (256, 16, 8192)
    total = prompts * samples * tokens * TOKEN_BYTES
    case = f"{total / 1e9:.3g} GB" if total > 1e9 else f"{total / 1e6:.3g} MB"
    with contextlib.ExitStack() as stack:
        pickled = stack.enter_context(contextlib.closing(pickled_pipe(prompts, samples * tokens)))
        raw = stack.enter_context(contextlib.closing(raw_pipe(prompts, samples * tokens)))
        ranks = stack.enter_context(contextlib.closing(Ranks(setting.program("bench/programs/transport"),
                                                             (prompts, samples, tokens))))
        show_memory(case, ranks)
        ways = {"shared memory": lambda: ranks.ask(ask="parcels", wire="memory")[2]["seconds"],
                "TCP": lambda: ranks.ask(ask="parcels", wire="stream")[2]["seconds"],
                "a memory copy": lambda: ranks.ask(ask="copy")[1]["seconds"],
                "padded tensors over a third rank by Gloo": lambda: ranks.ask(ask="gloo")[2]["seconds"],
                "a pickled pipe": pickled.seconds,
                "a pipe": raw.seconds}
        rates = {way: [] for way in ways}
        for number in range(setting.rounds + 1):
            for way, seconds in ways.items():
                rate = total / seconds() / 1e9
                if number > 0:  # the first ones touch memory for the first time
                    rates[way].append(rate)
        for wire in WIRES:
            show_speed(case, rates, wire)


if __name__ == "__main__":
    main()
