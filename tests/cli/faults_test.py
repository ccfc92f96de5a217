"""A node that throws, hangs, breaks its contract or is slow, at any position of ppo.toml's graph: the run ends soon, names the
node, leaks nothing and keeps its last checkpoint whole, from which it goes on once the fault is gone. Likewise when the disk
takes no more."""

import itertools
import json
import os
import re
import resource
import signal
import subprocess
import unittest

from fault_case import SETTINGS, FaultCase
from support import DONE, FAILED, PPO, ROOT, SMALL, TERMINATED, Case, run, sets, start, wait_for

PLUGIN = os.environ.get("SLUICE_TEST_PLUGINS", str(ROOT / "build/release/tests/plugins")) + "/libfaults.so"
os.environ["SLUICE_PLUGINS"] = PLUGIN  # the pipelines of the tests lie elsewhere

# Who takes its input from whom in ppo.toml; the faulty node is put after each of the first, in front of the second.
EDGES = {
    "generate": ["score", "reference", "values"],
    "score": ["rewards"],
    "reference": ["rewards"],
    "values": ["advantages"],
    "rewards": ["advantages"],
    "advantages": ["train"],
    "train": ["sync"],
    "sync": [],
}
INPUTS = {
    "score": ["generate"], "reference": ["generate"], "values": ["generate"], "rewards": ["score", "reference"],
    "advantages": ["rewards", "values"], "train": ["advantages"], "sync": ["train"],
}
BREACHES = {"missing_column": "did not write column", "undeclared_column": "which its contract does not say"}


class Faults(FaultCase):
    def pipeline(self, name, text):
        path = self.folder / f"{name}.toml"
        path.write_text(f'extends = "{PPO}"\nplugins = ["{PLUGIN}"]\n' + text)
        return path

    def behind(self, position, fault):
        """ppo.toml with the faulty node behind `position`."""
        text = f'[nodes.faulty]\ntype = "faulty"\ninputs = ["{position}"]\nfault = "{fault}"\n'
        for reader in EDGES[position]:
            inputs = [("faulty" if name == position else name) for name in INPUTS[reader]]
            text += f"[nodes.{reader}]\ninputs = {json.dumps(inputs)}\n"
        return self.pipeline(f"{position}-{fault}", text)

    def assert_goes_on_without(self, result, folder, node):
        self.assert_goes_on(result, folder, "--accept-changes", *sets(**{f"nodes.{node}.at": -1}))

    def test_a_leak_would_be_seen(self):
        result, _, _ = self.run_faulty(self.behind("generate", "leak"))
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn("libfaults.so", self.leaked.read_text())

    def test_a_node_that_throws_anywhere(self):
        for position in EDGES:
            with self.subTest(position):
                result, folder, seconds = self.run_faulty(self.behind(position, "throw"))
                self.assert_ends_well(result, folder, seconds, "faulty", "a fault, as asked")
                self.assertIn("iteration 2", result.stderr)
                self.assert_goes_on_without(result, folder, "faulty")

    def test_a_node_that_hangs_anywhere(self):
        for position in EDGES:
            with self.subTest(position):
                result, folder, seconds = self.run_faulty(self.behind(position, "hang"), stalls=True)
                self.assert_ends_well(result, folder, seconds, "faulty", "hangs")
                self.assertIn("stall_seconds", result.stderr)
                self.assert_goes_on_without(result, folder, "faulty")

    def test_a_node_that_breaks_its_contract_anywhere(self):
        for position, (fault, said) in zip(EDGES, itertools.cycle(BREACHES.items())):
            with self.subTest(f"{fault} after {position}"):
                result, folder, seconds = self.run_faulty(self.behind(position, fault))
                self.assert_ends_well(result, folder, seconds, "faulty", said)
                self.assertIn("bug of the node's type", result.stderr)
                self.assert_goes_on_without(result, folder, "faulty")

    def test_a_slow_node_only_takes_its_time(self):
        for position in ("generate", "advantages", "sync"):
            with self.subTest(position):
                result, folder, _ = self.run_faulty(self.behind(position, "slow"))
                self.assertEqual(result.returncode, DONE, result.stderr)
                self.assertEqual(len((folder / "metrics.jsonl").read_text().splitlines()), 5)

    def test_a_source_that_goes_wrong(self):
        for fault, said in {"throw": "a fault, as asked", "hang": "hangs", **BREACHES}.items():
            with self.subTest(fault):
                path = self.pipeline(f"source-{fault}", f"""
[nodes]
prompts = false
[nodes.sums]
type = "faulty_source"
fault = "{fault}"
[nodes.generate]
inputs = ["sums"]
""")
                result, folder, seconds = self.run_faulty(path, but={"nodes.prompts.groups_per_iteration"},
                                                          stalls=fault == "hang")
                self.assert_ends_well(result, folder, seconds, "sums",
                                      said if fault != "undeclared_column" else "did not write column")
                self.assert_goes_on_without(result, folder, "sums")

    def test_a_rollout_that_goes_wrong(self):
        for fault, said in {"throw": "a fault, as asked", "hang": "hangs", **BREACHES}.items():
            with self.subTest(fault):
                text = """
[nodes]
generate = false
sync = false
held_out = false
held_out_answers = false
held_out_score = false
[nodes.draw]
type = "faulty_rollout"
inputs = ["prompts"]
fault = "%s"
""" % fault
                for reader in ("score", "reference", "values"):
                    text += f'[nodes.{reader}]\ninputs = ["draw"]\n'
                unknown = {key for key in SMALL if key.startswith(("nodes.generate.", "nodes.held_out."))}
                result, folder, seconds = self.run_faulty(self.pipeline(f"rollout-{fault}", text), but=unknown,
                                                          stalls=fault == "hang")
                self.assert_ends_well(result, folder, seconds, "draw", said)
                self.assert_goes_on_without(result, folder, "draw")

    def with_environment(self, fault):
        text = f'[nodes.generate]\nenvironment = {{ type = "faulty_environment", fault = "{fault}" }}\n'
        return self.pipeline(f"environment-{fault}", text)

    # As a library may that knows no better: a scheduler would take the run for done.
    def test_code_that_calls_exit_does_not_end_the_run_as_if_it_were_done(self):
        result, folder, _ = self.run_faulty(self.behind("advantages", "exit"))
        self.assertEqual(result.returncode, FAILED, result.stdout)
        self.assertIn("called exit(0) before the command was done", result.stderr)
        self.assertEqual(run("resume", folder, "--accept-changes", *sets(**{"nodes.faulty.at": -1})).returncode, DONE)

    def test_a_crash_names_the_node_that_was_at_work(self):
        folder = self.folder / "run"
        crashed = run("run", self.behind("advantages", "crash"), "--run-dir", folder, *sets(**SETTINGS))
        self.assertEqual(crashed.returncode, -signal.SIGSEGV, crashed.stderr)
        self.assertIn("ended by SIGSEGV, a wrong access to memory, while node 'faulty' was at work (faulty of "
                      "plugin libfaults.so)\n", crashed.stderr)
        command = re.search("its checkpoints are as they were; resume with: rlhf-run (.*)\n", crashed.stderr)[1]
        self.assertEqual(run(*command.split(), "--accept-changes", *sets(**{"nodes.faulty.at": -1})).returncode, DONE)

    def test_who_is_still_at_work_behind_the_grace_is_named(self):
        folder = self.folder / "run"
        process = start("run", self.behind("advantages", "hang"), "--run-dir", folder, stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True, *sets(**SETTINGS | {"runtime.grace_seconds": 0.5}))
        self.addCleanup(process.kill)
        status = folder / "status.json"
        wait_for("the node that hangs", lambda: status.exists() and '"working_on":"faulty"' in status.read_text())
        process.terminate()
        for line in process.stderr:
            if "the grace is over" in line:
                break
        self.assertRegex(line, "warning: the grace is over, and 'faulty' has been at work for .*; another signal ends it at once")
        process.terminate()
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, TERMINATED)

    # It is called on a thread of the rollout's own, which nobody can end.
    def test_an_environment_of_a_plugin_that_goes_wrong(self):
        for fault, said in {"throw": "a fault, as asked",
                            "hang": "'generate' waits for the reply of its environment to turn 0 of sample "}.items():
            with self.subTest(fault):
                result, folder, seconds = self.run_faulty(self.with_environment(fault), stalls=fault == "hang")
                self.assert_ends_well(result, folder, seconds, "generate", said)
                self.assertIn("iteration 2", result.stderr)
                self.assert_goes_on(result, folder, "--accept-changes", *sets(**{"nodes.generate.environment.at": -1}))

    def test_an_interrupted_run_saves_and_leaves_an_environment_behind_that_hangs(self):
        folder = self.folder / "run"
        settings = SETTINGS | {"runtime.grace_seconds": 1}
        process = start("run", self.with_environment("hang"), "--run-dir", folder, *sets(**settings), stdout=subprocess.PIPE,
                        stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        status = folder / "status.json"
        wait_for("what hangs", lambda: status.exists() and "the reply of its environment" in status.read_text())
        process.terminate()
        out, err = process.communicate(timeout=60)
        self.assertEqual(process.returncode, TERMINATED, out + err)
        self.assertRegex(err, "warning: 'generate' waits for the reply of its environment to turn 0 .*: it is left behind")
        done = len((folder / "metrics.jsonl").read_text().splitlines())
        self.assertEqual((folder / "checkpoint").resolve().name, str(done))
        self.assertEqual(run("checkpoints", "verify", folder).returncode, DONE)


class DiskThatRefuses(Case):
    """Files may not become larger than LARGEST, which those of a model would."""

    LARGEST = 300_000
    SETTINGS = SMALL | {"checkpoint.every_iterations": 1, "checkpoint.keep_last": 0}

    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"
        done = run("run", PPO, "--run-dir", self.run_folder, *sets(**self.SETTINGS))
        self.assertEqual(done.returncode, DONE, done.stderr)

    def resume_limited(self, **settings):
        limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (self.LARGEST, self.LARGEST))
        return run("resume", self.run_folder, *sets(**{"pipeline.iterations": 5, **settings}), preexec_fn=limit)

    def rows(self):
        return [json.loads(line)["iteration"] for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]

    def assert_only_what_was_saved_is_there(self):
        self.assertEqual(sorted(path.name for path in (self.run_folder / "checkpoints").iterdir()), ["1", "2"])
        self.assertEqual(run("checkpoints", "verify", self.run_folder).returncode, DONE)
        resumed = run("resume", self.run_folder, *sets(**{"pipeline.iterations": 5}))
        self.assertEqual(resumed.returncode, DONE, resumed.stderr)
        self.assertIn(f"goes on from {self.run_folder}/checkpoints/2 ", resumed.stdout)
        self.assertEqual(self.rows(), list(range(5)))
        self.assertEqual(run("checkpoints", "verify", self.run_folder).returncode, DONE)

    def test_the_run_goes_on_where_it_is_told_to_and_says_so(self):
        result = self.resume_limited()
        self.assertEqual(result.returncode, FAILED, "at its end the run must be saved")
        self.assertEqual(self.rows(), list(range(5)))
        self.assertRegex(result.stderr, r"warning: .*checkpoint.*File too large")
        self.assertIn(f"last checkpoint: {self.run_folder}/checkpoints/2, resume with: ", result.stderr)
        self.assert_only_what_was_saved_is_there()

    # Some iterations later, since what is saved is written beside them.
    def test_the_run_stops_where_it_is_told_to(self):
        result = self.resume_limited(**{"checkpoint.on_failure": "stop", "pipeline.iterations": 50})
        self.assertEqual(result.returncode, FAILED, result.stderr)
        self.assertLess(len(self.rows()), 50)
        self.assertIn("File too large", result.stderr)
        self.assertIn(f"last checkpoint: {self.run_folder}/checkpoints/2, resume with: ", result.stderr)
        self.assert_only_what_was_saved_is_there()


if __name__ == "__main__":
    unittest.main()
