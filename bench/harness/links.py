"""Ranks on machines of their own: network namespaces around a switch, each with a link that takes so many bytes a second each
way.

The kernel's own TCP runs over it: a veth pair for each machine, with a token bucket at both of its ends."""

import os
import shutil
import subprocess
import time

NETWORK = "10.78.0"
CONGESTION = "cubic"  # what Linux has where nobody chose another one
BURST, WAITS = 256 << 10, 8 << 20  # bytes that go at once, and that wait at an end before some are dropped


def may_link():
    return (all(map(shutil.which, ("ip", "tc", "nsenter"))) and
            subprocess.run(["unshare", "--net", "true"], capture_output=True).returncode == 0)


class Machine:
    """A network of its own, which lives as long as the process that sleeps in it."""

    def __init__(self):
        self.sleeper = subprocess.Popen(["unshare", "--net", "sleep", "3600"])
        while os.readlink(f"/proc/{self.sleeper.pid}/ns/net") == os.readlink("/proc/self/ns/net"):
            time.sleep(0.01)
        self.do("ip", "link", "set", "lo", "up")

    def words(self, *words):
        return ["nsenter", "--target", str(self.sleeper.pid), "--net", *map(str, words)]

    def do(self, *words):
        subprocess.run(self.words(*words), check=True)

    def shape(self, device, bytes_per_second):
        self.do("tc", "qdisc", "add", "dev", device, "root", "tbf", "rate", f"{bytes_per_second:.0f}bps", "burst", BURST, "limit",
                WAITS)

    def end(self):
        self.sleeper.kill()
        self.sleeper.wait()


class Links:
    """Machines 0, 1, ...; for a `with`."""

    def __init__(self, count, bytes_per_second):
        self.switch, self.machines = Machine(), []
        self.switch.do("ip", "link", "add", "switch", "type", "bridge")
        self.switch.do("ip", "link", "set", "switch", "up")
        for number in range(count):
            machine = Machine()
            self.machines.append(machine)
            port = f"port{number}"
            self.switch.do("ip", "link", "add", port, "type", "veth", "peer", "name", "wire", "netns", machine.sleeper.pid)
            self.switch.do("ip", "link", "set", port, "master", "switch", "up")
            machine.do("ip", "address", "add", f"{self.address(number)}/24", "dev", "wire")
            machine.do("ip", "link", "set", "wire", "up")
            machine.do("ip", "route", "replace", f"{NETWORK}.0/24", "dev", "wire", "congctl", CONGESTION)
            self.switch.shape(port, bytes_per_second)
            machine.shape("wire", bytes_per_second)

    @staticmethod
    def address(number):
        return f"{NETWORK}.{number + 1}"

    def words(self, number, *words):
        """A command that runs on a machine."""
        return self.machines[number].words(*words)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for machine in (self.switch, *self.machines):
            machine.end()
