"""Runs of many iterations: what a run takes after a hundred of them it takes after four hundred."""

import itertools
import json
import os
import statistics
import unittest

from support import DONE, ROOT, SMALL, Case, run, sets

PLUGIN = os.environ.get("SLUICE_TEST_PLUGINS", str(ROOT / "build/release/tests/plugins")) + "/libfaults.so"
os.environ["SLUICE_PLUGINS"] = PLUGIN  # the pipelines of the tests lie elsewhere
ITERATIONS = 400
PARTS = 5  # of the iterations after the first hundred
MOST_GROWTH = 1e6  # bytes; allocators shift a tenth of it, and GROWING takes four times as much

SAMPLES = '[nodes.samples]\ntype = "write_jsonl"\ninputs = ["score"]\nfields = ["prompt", "response", "score"]\n'
SAVED = {"pipeline.iterations": ITERATIONS, "checkpoint.every_iterations": 20}
PROMPTS = {"nodes.prompts.groups_per_iteration": 8, "nodes.generate.samples_per_prompt": 4}
GROWING = f'plugins = ["{PLUGIN}"]\n[nodes.growing]\ntype = "faulty"\ninputs = ["generate"]\nfault = "grow"\n'


class LongRun(Case):
    def growth(self, file, added, settings):
        """Bytes by which the resident memory at an iteration's end grows after the first hundred, if it grows in most parts of
        the run: what leaks does. A thread takes two megabytes, and keeps them, at the first gradient that it has a part of."""
        pipeline = self.write("p.toml", f'extends = "{ROOT / "pipelines" / file}"\n{added}')
        folder = self.folder / file
        done = run("run", pipeline, "--run-dir", folder, *sets(**(settings | SAVED)), timeout=300)
        self.assertEqual(done.returncode, DONE, done.stderr)
        resident = [json.loads(line)["memory/resident_bytes"] for line in (folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual(len(resident), ITERATIONS)
        part = (ITERATIONS - 100) // PARTS
        levels = [statistics.median(resident[first:first + part]) for first in range(100, ITERATIONS, part)]
        return (PARTS - 1) * statistics.median_low(later - sooner for sooner, later in itertools.pairwise(levels))

    def test_memory_stays_where_it_was(self):
        for name, *words in (("ppo.toml", SAMPLES, SMALL),
                             ("grpo.toml", SAMPLES, {**PROMPTS, "schedule.policy_lag": 2}),
                             ("calculator.toml", "", PROMPTS)):
            with self.subTest(name):
                self.assertLess(self.growth(name, *words), MOST_GROWTH)

    def test_what_grows_would_be_seen(self):
        self.assertGreater(self.growth("grpo.toml", GROWING, PROMPTS), MOST_GROWTH)


if __name__ == "__main__":
    unittest.main()
