"""A quick start (tests/quick_start) is one, and gives what a real start of the program does."""

import contextlib
import os
import pathlib
import subprocess
import unittest
import unittest.mock

from support import DONE, MODEL, PPO, SMALL, WRONG_PIPELINE, WRONG_USAGE, Case, metrics_so_far, repeatable, run, sets, wait_for


def run_quickly(*words, **options):
    with unittest.mock.patch("subprocess.run", side_effect=AssertionError("a real start")):
        return run(*words, **options)


class QuickStarts(Case):
    def assert_alike(self, *words, code=DONE, **options):
        """Both starts end with `code` and say the same; what that is."""
        quick, real = run_quickly(*words, **options), run(*words, anew=True, **options)
        self.assertEqual((quick.returncode, quick.stdout, quick.stderr), (real.returncode, real.stdout, real.stderr))
        self.assertEqual(real.returncode, code, real.stderr)
        return real.stdout + real.stderr

    def test_commands_say_the_same_and_end_with_the_same_code(self):
        self.assert_alike("nodes")
        self.assert_alike("plan", PPO, "--format", "json")
        self.assert_alike("frobnicate", code=WRONG_USAGE)
        self.assert_alike("validate", PPO, "--set", "nodes.advantages.whiten=iteration", code=WRONG_PIPELINE)

    def test_each_has_its_own_input_folder_and_environment(self):
        for ids in ("[20]\n", "[21]\n[22]\n"):
            self.assertEqual(self.assert_alike("model", "detokenize", MODEL, stdin=ids).count("\n"), ids.count("\n"))
        self.write("p.toml", "[pipeline]\n")
        self.assertIn("p.toml:1", self.assert_alike("validate", "p.toml", cwd=self.folder, code=WRONG_PIPELINE))
        home = {**os.environ, "HOME": str(self.folder)}
        self.assertIn(f"{self.folder}/p.toml:1", self.assert_alike("validate", "~/p.toml", env=home, code=WRONG_PIPELINE))
        self.assert_alike("validate", "p.toml", code=WRONG_PIPELINE)  # in the folder of all others again: no such file

    def test_runs_train_the_same_numbers_on_one_rank_and_on_two(self):
        for command in (["run", PPO], ["launch", "--ranks", "2", PPO]):
            rows = []
            for name, start in (("quick", run_quickly), ("real", lambda *words: run(*words, anew=True))):
                folder = self.folder / f"{command[0]}-{name}"
                done = start(*command, "--run-dir", folder, *sets(**SMALL))
                self.assertEqual(done.returncode, DONE, done.stderr)
                rows.append(repeatable(metrics_so_far(folder)))
            self.assertEqual(*rows)

    def test_what_takes_too_long_is_killed(self):
        with self.assertRaises(subprocess.TimeoutExpired):
            run_quickly("run", PPO, "--run-dir", "run", *sets(**{**SMALL, "pipeline.iterations": 1000000}), cwd=self.folder,
                        timeout=3)
        wait_for("its end", lambda: not self.processes_here())

    def processes_here(self):
        """Those whose folder is that of this test, as /proc has them: an answer while they end, too."""
        found = []
        for folder in pathlib.Path("/proc").glob("[0-9]*/cwd"):
            with contextlib.suppress(OSError):  # it has ended, or is another user's
                if folder.readlink() == self.folder:
                    found.append(folder.parent.name)
        return found


if __name__ == "__main__":
    unittest.main()
