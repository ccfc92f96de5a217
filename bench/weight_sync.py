#!/usr/bin/env python3
"""How long are weights on their way from the ranks that train them to those that sample with them?

usage: bench/weight_sync.py [--smoke | --quick] [--build FOLDER] [--rounds N] [--only TEXT]

A publication (comm/weights/) from when its owner begins to write it until it is open everywhere, in turn with what it is compared
with:

- On one host, through shared memory: against a broadcast of each tensor from rank 0 by Gloo, and against a plain pull: rank 0
writes all of it to
  shared memory, and then receivers copy it from there, all at the same time.
- 1,000 small tensors over TCP, against the same broadcast.
- From 4 owners to 4 receivers, each on a machine with a link of its own (bench/harness/links.py): against rank 0, which has all
bytes already and sends
  them to each receiver, and against bytes by bandwidth of a link.
- To 8 receivers and to 2, over such links.

Links are slow enough that two cores can serve all of them."""

import concurrent.futures
import contextlib
import socket

from harness import links, report
from harness.workers import Setting, Worker

MIB = 1 << 20
WARM_UP = 2  # rounds: a receiver has two places, which are written for the first time
NO_LINKS = "network namespaces are not permitted here, or there is no ip and tc"


class Ranks:
    """Processes of bench/weight_sync.cpp, which are asked at the same time."""

    def __init__(self, setting, owners, receivers, tensors, tensor_bytes, wires=None):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            port = found.getsockname()[1]
        size = owners + receivers
        store = wires.address(0) if wires else "127.0.0.1"
        program = setting.program("bench/programs/weight_sync")
        self.bytes = tensors * tensor_bytes
        self.workers = []
        for rank in range(size):
            words = [program, rank, size, store, port, wires.address(rank) if wires else store, owners, tensors, tensor_bytes]
            self.workers.append(Worker(wires.words(rank, *words) if wires else words, {"OMP_NUM_THREADS": "1"}))
        self.pool = concurrent.futures.ThreadPoolExecutor(size)

    def seconds(self, **question):
        """Until the last rank is done."""
        return max(answer["seconds"] for answer in self.pool.map(lambda worker: worker.ask(**question), self.workers))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for worker in self.workers:
            worker.close()


def in_turn(setting, ways):
    """Seconds of each way, by round."""
    seconds = {way: [] for way in ways}
    for number in range(setting.rounds + WARM_UP):
        for way, ask in ways.items():
            measured = ask()
            if number >= WARM_UP:
                seconds[way].append(measured)
    return seconds


def rates(size, seconds):
    return [size / each / 1e9 for each in seconds]


def size_text(size):
    return f"{size / 1e9:.3g} GB" if size >= 1e9 else f"{size / 1e6:.3g} MB"


def shared_memory(setting, receivers):
    tensors, tensor_bytes = (4, 4096) if setting.smoke else (128, 2 * MIB)
    with Ranks(setting, 1, receivers, tensors, tensor_bytes) as ranks:
        case = f"shared memory, {receivers} receivers, {size_text(ranks.bytes)}"
        if not setting.wants(case):
            return
        seconds = in_turn(setting, {"ours": lambda: ranks.seconds(ask="publish", wire="memory"),
                                    "broadcast": lambda: ranks.seconds(ask="broadcast"),
                                    "pull": lambda: ranks.seconds(ask="pull")})
        speed = {way: rates(ranks.bytes, each) for way, each in seconds.items()}
        report.show("weight_sync", f"{case}, against a broadcast of each tensor", "GB/s", speed["ours"], speed["broadcast"],
                    at_least=5)
        report.show("weight_sync", f"{case}, against a pull", "GB/s", speed["ours"], speed["pull"], at_least=0.9)


def small_tensors(setting):
    tensors = 4 if setting.smoke else 1000
    with Ranks(setting, 1, 2, tensors, 64 << 10) as ranks:
        case = f"TCP, 2 receivers, {tensors} tensors of 64 KiB"
        if not setting.wants(case):
            return
        seconds = in_turn(setting, {"ours": lambda: ranks.seconds(ask="publish", wire="stream"),
                                    "broadcast": lambda: ranks.seconds(ask="broadcast")})
        speed = {way: rates(ranks.bytes, each) for way, each in seconds.items()}
        report.show("weight_sync", f"{case}, against a broadcast of each", "GB/s", speed["ours"], speed["broadcast"], at_least=3)


def sharded(setting):
    rate = 200e6
    tensors, tensor_bytes = (4, 64 << 10) if setting.smoke else (64, 4 * MIB)
    case = f"4 owners to 4 receivers, links of {rate / 1e6:g} MB/s"
    if not setting.wants(case):
        return
    if not links.may_link():
        return report.missing("weight_sync", case, NO_LINKS)
    with links.Links(8, rate) as wires, Ranks(setting, 4, 4, tensors, tensor_bytes, wires) as ranks:
        case += f", {size_text(ranks.bytes)}"
        seconds = in_turn(setting, {"ours": lambda: ranks.seconds(ask="publish", wire="stream"),
                                    "rank 0": lambda: ranks.seconds(ask="from rank 0", wire="stream")})
        speed = {way: rates(ranks.bytes, each) for way, each in seconds.items()}
        report.show("weight_sync", f"{case}, against rank 0 alone", "GB/s", speed["ours"], speed["rank 0"], at_least=3.5)
        report.show("weight_sync", f"{case}, against the bandwidth of a link", "GB/s", speed["ours"],
                    [rate / 1e9] * setting.rounds, at_least=0.8)


def more_receivers(setting):
    rate = 50e6
    tensors, tensor_bytes = (4, 64 << 10) if setting.smoke else (32, 4 * MIB)
    case = f"8 receivers, links of {rate / 1e6:g} MB/s"
    if not setting.wants(case):
        return
    if not links.may_link():
        return report.missing("weight_sync", case, NO_LINKS)
    with contextlib.ExitStack() as stack:
        ranks = {}
        for receivers in (2, 8):
            wires = stack.enter_context(links.Links(1 + receivers, rate))
            ranks[receivers] = stack.enter_context(Ranks(setting, 1, receivers, tensors, tensor_bytes, wires))
        seconds = in_turn(setting, {receivers: lambda each=each: each.seconds(ask="publish", wire="stream")
                                    for receivers, each in ranks.items()})
        report.show("weight_sync", f"{case}, {size_text(ranks[8].bytes)}, against 2 receivers", "s", seconds[8], seconds[2],
                    at_most=1.15)


def main():
    setting = Setting(__doc__, rounds=5)
    for receivers in (2, 4):
        shared_memory(setting, receivers)
    small_tensors(setting)
    sharded(setting)
    more_receivers(setting)


if __name__ == "__main__":
    main()
