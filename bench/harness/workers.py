"""Processes that are asked in turn: each question and each answer is a line of JSON, and who is not asked waits and takes no
time.

Programs of ours (build/release/bench/programs) and peers (bench/peers) talk alike. The first answer of a worker is its
warm-up."""

import argparse
import contextlib
import json
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
LAST_LINES = 12
PRECISIONS = {"float32": "fp32", "bfloat16": "bf16"}  # as rlhf-run and the programs name them: as the cases do


def cores():
    return len(os.sched_getaffinity(0))


class Worker:
    def __init__(self, command, environment=None):
        self.command = [str(part) for part in command]
        self.log = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.log, text=True,
                                        env=os.environ | (environment or {}))

    def ask(self, **question):
        try:
            print(json.dumps(question), file=self.process.stdin, flush=True)
            answer = self.process.stdout.readline()
        except BrokenPipeError:
            answer = ""
        if not answer:
            self.process.wait()
            self.log.seek(0)
            words = "".join(self.log.readlines()[-LAST_LINES:])
            what = f"ended with {self.process.returncode} instead of an answer to {json.dumps(question)}"
            sys.exit(f"error: {' '.join(self.command)}\n       {what}\n{words}")
        return json.loads(answer)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.process.kill()
        self.process.communicate()
        self.log.close()


class Setting:
    """Where programs and peers are, and how much is to be measured: what every bench script is called with."""

    def __init__(self, description, rounds):
        parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
        parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build" / "release",
                            help="a build folder, instead of build/release")
        parser.add_argument("--peers", type=pathlib.Path, default=ROOT / ".deps" / "peers",
                            help="what `bench/run --peers` fetched")
        parser.add_argument("--smoke", action="store_true", help="a tiny model once, and no peers: to see that it works")
        parser.add_argument("--quick", action="store_true", help="fewer sizes and repetitions")
        parser.add_argument("--rounds", type=int, help=f"repetitions, {rounds}")
        parser.add_argument("--only", action="append", default=[], metavar="TEXT",
                            help="only cases whose name begins with this; may be repeated")
        options = parser.parse_args()
        self.build, self.peers = options.build.resolve(), options.peers.absolute()
        self.smoke, self.quick, self.only = options.smoke, options.quick, options.only
        self.rounds = 1 if self.smoke else options.rounds or (2 if self.quick else rounds)

    def wants(self, case):
        return not self.only or any(case.startswith(text) for text in self.only)

    def program(self, path):
        found = self.build / path
        if not found.exists():
            sys.exit(f"error: there is no {found}\n"
                     f"       bench/run builds it, or: cmake --build {self.build} --target benches sluice_program")
        return found

    def has_peers(self):
        return not self.smoke and (self.peers / "complete").exists()

    def without_peers(self):
        return "peers are not asked" if self.smoke else "no peers: bench/run --peers fetches them"

    def peer(self, script, *arguments):
        """A peer on as many threads as we have cores. PPO has packages of its own, see peers/set_up.py."""
        environment = {"OMP_NUM_THREADS": str(cores()), "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}
        if script == "ppo.py":
            environment["PYTHONPATH"] = str(self.peers / "ppo")
        return Worker([self.peers / "bin" / "python", ROOT / "bench" / "peers" / script, *arguments], environment)

    def peer_if_there(self, script, *arguments):
        """The same for a `with`; None where there are no peers."""
        return self.peer(script, *arguments) if self.has_peers() else contextlib.nullcontext()

    def peak(self):
        return Peak(self)


class Peak:
    """What this machine computes and reads at best, measured again in every round beside what is compared with it."""

    def __init__(self, setting):
        self.size = 128 if setting.smoke else 2048
        self.megabytes = 1 if setting.smoke else 256
        self.worker = Worker([setting.program("bench/programs/peak"), cores()])

    def flops(self, dtype):
        """Of a product of two square matrices, LibTorch's or our own: the faster one."""
        answer = self.worker.ask(ask="product", dtype=dtype, size=self.size)
        return max(answer["library"], answer["ours"])

    def bytes_per_second(self):
        return self.worker.ask(ask="memory", megabytes=self.megabytes)["bytes_per_second"]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.worker.close()
