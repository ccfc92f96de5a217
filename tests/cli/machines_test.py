"""Ranks on two machines: network namespaces with a wire between them, each of which sees its own loopback alone."""

import contextlib
import json
import os
import shutil
import subprocess
import time
import unittest

from ranks_test import free_port
from support import DONE, PPO, PROGRAM, Case, run, sets, training_state, with_roles

SETTINGS = {"pipeline.iterations": 3, "cluster.slots": 4, "nodes.prompts.groups_per_iteration": 8}
ADDRESSES = ("10.77.0.1", "10.77.0.2")


def may_wire():
    return shutil.which("ip") and subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0


class Machine:
    """A network of its own, which lives as long as the process that sleeps in it."""

    def __init__(self):
        self.sleeper = subprocess.Popen(["unshare", "--net", "sleep", "300"])
        while os.readlink(f"/proc/{self.sleeper.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)

    def words(self, *words):
        return ["nsenter", "--target", str(self.sleeper.pid), "--net", *map(str, words)]

    def do(self, *words):
        subprocess.run(self.words(*words), check=True)

    def end(self):
        self.sleeper.kill()
        self.sleeper.wait()


@contextlib.contextmanager
def two_machines():
    machines = [Machine(), Machine()]
    try:
        machines[0].do("ip", "link", "add", "wire", "type", "veth", "peer", "name", "wire", "netns", machines[1].sleeper.pid)
        for machine, address in zip(machines, ADDRESSES):
            machine.do("ip", "link", "set", "lo", "up")
            machine.do("ip", "address", "add", f"{address}/24", "dev", "wire")
            machine.do("ip", "link", "set", "wire", "up")
        yield machines
    finally:
        for machine in machines:
            machine.end()


@unittest.skipUnless(may_wire(), "network namespaces are not permitted here, or there is no ip")
class Machines(Case):
    def start(self, machine, rank, address, pipeline=PPO, **environment):
        words = machine.words(PROGRAM, "run", pipeline, "--run-dir", self.folder / "run", *sets(**SETTINGS))
        environment = {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "1", "MASTER_ADDR": address,
                       "MASTER_PORT": str(self.port), "SLUICE_CLUSTER_KEY": "a text that nobody guesses", **environment}
        return subprocess.Popen(words, env={**os.environ, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                text=True)

    def run_on(self, machines, addresses, **environment):
        self.port = free_port()
        ranks = [self.start(machine, rank, address, **environment)
                 for rank, (machine, address) in enumerate(zip(machines, addresses))]
        return self.ends_of(ranks)

    def ends_of(self, ranks):
        said = [rank.communicate(timeout=120) for rank in ranks]
        return [(rank.returncode, out + err) for rank, (out, err) in zip(ranks, said)]

    def assert_as_alone(self):
        alone = run("run", PPO, "--run-dir", self.folder / "alone", *sets(**SETTINGS))
        self.assertEqual(alone.returncode, DONE, alone.stderr)
        self.assertEqual(self.lines_of("run"), self.lines_of("alone"))
        self.assertEqual(*(training_state((self.folder / name / "checkpoint").resolve(), "actor") for name in ("run", "alone")))

    def test_give_the_result_of_one_process(self):
        with two_machines() as machines:
            for code, said in self.run_on(machines, (ADDRESSES[0], ADDRESSES[0])):
                self.assertEqual(code, DONE, said)
        self.assert_as_alone()

    def test_versions_come_to_each_machine_once_and_are_sampled_from_on_both(self):
        """One rank that samples beside the one that trains, and two on the other machine, which have in common where versions
        land."""
        pipeline = self.write("apart.toml", with_roles("ppo.toml", training=1, sampling=3))
        self.port = free_port()
        with two_machines() as machines:
            ranks = [self.start(machines[rank // 2], rank, ADDRESSES[0], pipeline, WORLD_SIZE="4", LOCAL_RANK=str(rank % 2),
                                LOCAL_WORLD_SIZE="2") for rank in range(4)]
            for code, said in self.ends_of(ranks):
                self.assertEqual(code, DONE, said)
        self.assert_as_alone()
        landings = {row["rank"]: row["classes"]["weights"]
                    for row in json.loads((self.folder / "run/memory.json").read_text())["ranks"]}
        self.assertEqual(landings[2], landings[3])
        self.assertLess(landings[2], landings[1])

    def test_a_machine_may_know_its_own_name_as_a_loopback(self):
        with two_machines() as machines:
            for code, said in self.run_on(machines, ("127.0.1.1", ADDRESSES[0])):
                self.assertEqual(code, DONE, said)

    def test_need_a_key(self):
        with two_machines() as machines:
            for code, said in self.run_on(machines, (ADDRESSES[0], ADDRESSES[0]), SLUICE_CLUSTER_KEY="")[:1]:
                self.assertNotEqual(code, DONE)
                self.assertIn("SLUICE_CLUSTER_KEY", said)


if __name__ == "__main__":
    unittest.main()
