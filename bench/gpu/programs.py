"""Cases that run our test programs, and those of bench/ that are asked."""

import json
import os
import pathlib
import subprocess
import tempfile

from cases import LAST_CHARACTERS, Failed
from place import BENCHES, TESTS, environment


def tests(program, filter):
    """Failed where a test fails or is skipped, or where there is none."""
    with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
        report = pathlib.Path(folder) / "report.json"
        words = [TESTS[program], f"--gtest_filter={filter}", f"--gtest_output=json:{report}", "--gtest_brief=1"]
        done = subprocess.run(words, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              errors="replace")
        if not report.exists():
            raise Failed(f"it ended with {done.returncode}: {done.stdout[-LAST_CHARACTERS:]}")
        suites = json.loads(report.read_text())["testsuites"]
    results = [(f"{suite['name']}.{test['name']}", test) for suite in suites for test in suite["testsuite"]]
    skipped = [name for name, test in results if test["result"] == "SKIPPED"]
    failed = [name for name, test in results if test.get("failures")]
    if failed or skipped or not results or done.returncode != 0:
        raise Failed(f"of {len(results)} tests failed: {failed}, skipped: {skipped}; {done.stdout[-LAST_CHARACTERS:]}")
    return {"tests": len(results)}


def asked(name, *words):
    """A program of bench/ that answers questions; use it by `with`."""
    from harness.workers import Worker
    return Worker([BENCHES / name, *words], environment())


def cores():
    return len(os.sched_getaffinity(0))


def median(values):
    return sorted(values)[len(values) // 2]
