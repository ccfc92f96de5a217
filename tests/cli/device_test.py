"""Models on a device that the machine lacks: `validate` and `plan` warn, `run` refuses before anything is made."""

import unittest

from support import DONE, PPO, SMALL, WRONG_PIPELINE, Case, run, sets

FAR = "cuda:127"  # no machine has so many


class MissingDevice(Case):
    def with_device(self, command, *words, **more):
        return run(command, PPO, *words, *sets(**SMALL, **{"models.actor.device": FAR}, **more))

    def test_validate_warns_with_the_place_and_the_way_out(self):
        done = self.with_device("validate")
        self.assertEqual(done.returncode, DONE, done.stderr)
        for text in ("warning: model 'actor' is on cuda:127: this ", 'or device = "cpu"', "--set:1:"):
            self.assertIn(text, done.stderr)

    def test_plan_shows_that_nodes_run_where_their_models_are(self):
        done = run("plan", PPO, *sets(**{**SMALL, "models.reference.device": FAR}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        places = {line.split()[0]: line.split()[2] for line in done.stdout.splitlines() if " logprobs " in line or " values " in line}
        self.assertEqual(places["reference"], FAR)
        self.assertEqual(places["values"], "cpu")

    def test_run_refuses_it_and_makes_nothing(self):
        folder = self.folder / "run"
        done = self.with_device("run", "--run-dir", folder)
        self.assert_refused(done, "error: model 'actor' is on cuda:127: this ", 'device = "cpu"')
        self.assertFalse(folder.exists())


if __name__ == "__main__":
    unittest.main()
