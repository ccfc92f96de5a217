"""What the tests of faults share: a run of a small ppo.toml that is to fail in its third iteration, and what must be left of
it."""

import json
import os
import subprocess
import time

from support import DONE, FAILED, PROGRAM, ROOT, SMALL, Case, run, sets, skip_or_fail

STALL_SECONDS = 3  # of a run that is to stall; on a machine that has much else to do any run may
ENDS_WITHIN = 60  # seconds after the fault, which is less than a run waits that nothing but its time ends
ITERATIONS = 5
PATIENT_SECONDS = 600  # more than any machine needs
SETTINGS = SMALL | {"pipeline.iterations": ITERATIONS, "checkpoint.every_iterations": 1, "runtime.stall_seconds": PATIENT_SECONDS,
                    "nodes.advantages.whiten": "none", "nodes.train.mini_batches": 1, "budget.micro_batch_tokens": 128}


def leak_sanitizer():
    """LeakSanitizer's library, which any program can be started with. Part of the compiler."""
    found = subprocess.run(["g++", "-print-file-name=liblsan.so"], capture_output=True, text=True).stdout.strip()
    return found if os.path.isabs(found) else skip_or_fail("g++ has no liblsan.so")


class FaultCase(Case):
    def run_faulty(self, path, but=(), stalls=False):
        """Runs the pipeline under LeakSanitizer, with SETTINGS but those in `but`. A program that ends by itself must not leak;
        one that leaves a thread behind that hangs ends without being looked at."""
        settings = {key: value for key, value in SETTINGS.items() if key not in but}
        if stalls:
            settings["runtime.stall_seconds"] = STALL_SECONDS
        folder = self.folder / (path.stem + "-run")
        leaks = self.folder / (path.stem + "-leaks")
        checked = os.environ | {"LD_PRELOAD": leak_sanitizer(), "LSAN_OPTIONS": f"exitcode=0:log_path={leaks}"}
        begin = time.monotonic()
        with subprocess.Popen([PROGRAM, "run", path, "--run-dir", folder, *sets(**settings)], cwd=ROOT, text=True, env=checked,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as program:
            try:
                stdout, stderr = program.communicate(timeout=120)
            except subprocess.TimeoutExpired:
                program.kill()
                raise
        seconds = time.monotonic() - begin
        self.leaked = leaks.with_name(f"{leaks.name}.{program.pid}")
        return subprocess.CompletedProcess(program.args, program.returncode, stdout, stderr), folder, seconds

    def assert_ends_well(self, result, folder, seconds, node, said):
        self.assertEqual(result.returncode, FAILED, result.stderr)
        self.assertIn(f"node '{node}'", result.stderr)
        self.assertIn(said, result.stderr)
        self.assertNotIn("internal error", result.stderr)
        self.assertLess(seconds, STALL_SECONDS + ENDS_WITHIN)
        self.assertFalse(self.leaked.exists(), self.leaked.exists() and self.leaked.read_text())
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        self.assertLessEqual(len(rows), 2, "an iteration was reported that cannot be complete")
        self.assertIn(json.loads((folder / "status.json").read_text())["state"], ("failed", "stalled"))

    def assert_goes_on(self, result, folder, *words):
        """From its last checkpoint, which others can load, now that the fault is gone."""
        last = (folder / "checkpoint").resolve()
        self.assertIn(f"      = the run stopped; last checkpoint: {folder}/checkpoints/{last.name}, resume with: "
                      f"rlhf-run resume {folder}\n", result.stderr)
        loaded = run("model", "logprobs", last / "actor", stdin="[1, 2, 3]\n")
        self.assertEqual(loaded.returncode, DONE, loaded.stderr)
        self.assertEqual(len(json.loads(loaded.stdout)), 2)
        resumed = run("resume", folder, *words, *sets(**{"runtime.stall_seconds": PATIENT_SECONDS}))
        self.assertEqual(resumed.returncode, DONE, resumed.stderr)
        self.assertIn(f"goes on from {folder}/checkpoints/{last.name} ", resumed.stdout)
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["iteration"] for row in rows], list(range(ITERATIONS)))
