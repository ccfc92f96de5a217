"""Every kind of problem that `validate` can report: one golden text each, the list of kinds, and the table of the documentation.

A case is tests/golden/problems/KIND.toml, or KIND-2.toml and so on, with its text in the .txt beside it. A first line
`# arguments: ...` adds arguments; PLUGINS in them is the folder of the plugins that the tests build. `# on one core` gives the
program one. SLUICE_UPDATE_GOLDEN=1 rewrites the texts.
"""

import concurrent.futures
import functools
import json
import os
import pathlib
import re
import shlex
import tempfile
import unittest

from support import DONE, ROOT, WRONG_PIPELINE, run

CASES = ROOT / "tests/golden/problems"
PLUGINS = os.environ.get("SLUICE_TEST_PLUGINS", str(ROOT / "build/release/tests/plugins"))
UPDATE = os.environ.get("SLUICE_UPDATE_GOLDEN") == "1"
JSON = ("--format", "json")
FIELDS = ["kind", "severity", "file", "line", "column", "message", "caret", "notes", "help"]


def kind_of(case):
    return re.sub(r"-\d+$", "", case.stem)


def arguments_of(case):
    first_line = case.read_bytes().split(b"\n")[0].decode(errors="replace")
    arguments = first_line.removeprefix("# arguments:") if first_line.startswith("# arguments:") else ""
    # Quotes are TOML's here.
    return [word.replace("PLUGINS", PLUGINS) for word in shlex.split(arguments.replace('"', '\\"'))]


def cores_for(case):
    """Options of the process of this case."""
    if not case.read_bytes().startswith(b"# on one core"):
        return {}
    return {"preexec_fn": functools.partial(os.sched_setaffinity, 0, {min(os.sched_getaffinity(0))})}


def run_case(command, case, *words):
    machine = os.environ | {"HF_HUB_CACHE": str(CASES / "nothing")}  # whatever this one has in its cache
    return run(command, case.name, *arguments_of(case), *words, cwd=CASES, env=machine, **cores_for(case))


@functools.cache
def validate(case, *words):
    return run_case("validate", case, *words)


@functools.cache
def validate_all():
    """Fills the cache of validate() on all cores."""
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        list(pool.map(validate, CASES.glob("*.toml")))
        list(pool.map(lambda case: validate(case, *JSON), first_of_each_kind()))


def first_of_each_kind():
    return [case for case in CASES.glob("*.toml") if case.stem == kind_of(case)]


def kinds_of(done):
    return sorted(problem["kind"] for problem in json.loads(done.stdout)["problems"])


def without_machine(text):
    """The folder of the plugins differs from build to build: in paths, and in how many carets stand below one. What a machine
    lacks for a device differs from machine to machine."""
    lines = text.split("\n")
    for above, line in zip(lines, lines[1:]):
        if PLUGINS in above and "^" in line:
            extra = len(PLUGINS) - len("PLUGINS")
            lines[lines.index(line)] = line.replace("^" * (extra + 1), "^", 1)
    text = re.sub(r"(cuda:127: ).*((?:\n.*)*?\n +)= help: .*, or", r"\1WHAT IT LACKS\2= help: WHAT TO DO, or", "\n".join(lines))
    return text.replace(PLUGINS, "PLUGINS").replace(str(CASES), "CASES")


class Problems(unittest.TestCase):
    maxDiff = None
    cases = sorted(CASES.glob("*.toml"))

    def setUp(self):
        done = run("problems")
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))
        rows = [line.split(maxsplit=2) for line in done.stdout.splitlines()]
        self.severity = {row[0]: row[1] for row in rows}
        self.assertEqual(len(self.severity), len(rows), "an id is there twice")

    def test_the_text_of_each_case_is_as_expected(self):
        validate_all()
        for case in self.cases:
            with self.subTest(case.name):
                done = validate(case)
                self.assertIn(done.returncode, (DONE, WRONG_PIPELINE))
                text, golden = without_machine(done.stderr), case.with_suffix(".txt")
                if UPDATE:
                    golden.write_text(text)
                self.assertEqual(golden.read_text() if golden.exists() else None, text,
                                 f"differs from {golden}; if that is meant, run again with SLUICE_UPDATE_GOLDEN=1")

    def test_json_has_the_same_problems_with_their_kinds(self):
        validate_all()
        for case in first_of_each_kind():
            with self.subTest(case.name):
                text, done = validate(case), validate(case, *JSON)
                self.assertEqual((done.returncode, done.stderr), (text.returncode, ""))
                found = json.loads(done.stdout)
                self.assertEqual(found["ok"], done.returncode == DONE)
                self.assertIn(kind_of(case), [problem["kind"] for problem in found["problems"]])
                headers = re.findall(r"(?m)^(?:(.*?)(?::(\d+):(\d+))?: )?(error|warning): (.*)$", text.stderr)
                self.assertEqual([(p["severity"], p["message"].split("\n")[0]) for p in found["problems"]],
                                 [(severity, message) for _, _, _, severity, message in headers])
                for problem, (file, line, column, _, _) in zip(found["problems"], headers):
                    self.assertEqual(list(problem), FIELDS)
                    self.assertEqual(problem["severity"], self.severity.get(problem["kind"]), problem)
                    self.assertEqual((problem["file"], problem["line"]), (file, int(line or 0)))
                    if line:
                        self.assertEqual(problem["column"], int(column))

    def test_the_effective_pipeline_has_the_same_warnings(self):
        validate_all()
        valid = [case for case in self.cases if validate(case).returncode == DONE
                 and case.stem != "plugin-not-loaded"]  # has no plan that could be written out
        self.assertGreaterEqual(len(valid), 10)
        with tempfile.TemporaryDirectory() as folder:
            for case in valid:
                with self.subTest(case.name):
                    effective = pathlib.Path(folder) / case.name
                    effective.write_text(run_case("plan", case, "--config").stdout)
                    again = run("validate", effective, "--plugins", *JSON, **cores_for(case))
                    self.assertEqual(kinds_of(again), kinds_of(validate(case, *JSON)), again.stdout)

    def test_every_kind_has_a_case_and_every_case_a_kind(self):
        self.assertEqual({kind_of(case) for case in self.cases}, set(self.severity))

    def test_no_text_is_left_of_a_case_that_is_gone(self):
        self.assertEqual([text.name for text in CASES.glob("*.txt") if not text.with_suffix(".toml").exists()], [])

    def test_a_pipeline_without_problems_is_ok(self):
        done = run("validate", CASES / "base/ppo.toml", "--format", "json")
        self.assertEqual((done.returncode, json.loads(done.stdout)), (DONE, {"problems": [], "ok": True}))

    def test_the_documentation_has_the_table(self):
        table = run("problems", "--format", "markdown").stdout
        self.assertEqual(len(table.splitlines()), len(self.severity) + 2)
        page = (ROOT / "docs/pipeline-language.md").read_text()
        begin, end = "<!-- problems: generated by rlhf-run problems --format markdown -->\n", "<!-- end -->"
        self.assertEqual(page.count(begin), 1)
        current = page.split(begin)[1].split(end)[0]
        if UPDATE:
            (ROOT / "docs/pipeline-language.md").write_text(page.replace(begin + current, begin + table))
        else:
            self.assertEqual(current, table, "the table is stale: SLUICE_UPDATE_GOLDEN=1 python3 tests/cli/problems_test.py")


if __name__ == "__main__":
    unittest.main()
