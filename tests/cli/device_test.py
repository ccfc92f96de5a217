"""Models on a device that the machine lacks, or without their weights: `validate` and `plan` warn, `run` refuses before anything
is made."""

import shutil
import unittest

from support import DONE, MODEL, PPO, ROOT, SMALL, Case, run, sets

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
        places = {line.split()[0]: line.split()[2]
                  for line in done.stdout.splitlines() if " logprobs " in line or " values " in line}
        self.assertEqual(places["reference"], FAR)
        self.assertEqual(places["values"], "cpu")

    def test_run_refuses_it_and_makes_nothing(self):
        folder = self.folder / "run"
        done = self.with_device("run", "--run-dir", folder)
        self.assert_refused(done, "error: model 'actor' is on cuda:127: this ", 'device = "cpu"')
        self.assertFalse(folder.exists())


class MissingWeights(Case):
    def with_folder(self, command, folder, *words, **more):
        return run(command, PPO, *words, *sets(**SMALL, **{"models.reference.checkpoint": str(folder)}, **more))

    def cut(self):
        folder = self.folder / "cut"
        shutil.copytree(MODEL, folder)
        weights = folder / "model.safetensors"
        weights.write_bytes(weights.read_bytes()[:-100])
        return folder

    def test_validate_and_plan_warn_with_the_place_and_the_way_out(self):
        for folder, says in ((ROOT / "pipelines/models/tiny-random", "holds neither model.safetensors nor"),
                             (self.cut(), "model.safetensors: ")):
            for command in ("validate", "plan"):
                with self.subTest(folder=folder, command=command):
                    done = self.with_folder(command, folder)
                    self.assertEqual(done.returncode, DONE, done.stderr)
                    for text in ("--set:", ": warning: ", str(folder), says):
                        self.assertIn(text, done.stderr)

    def test_run_refuses_it_and_makes_nothing(self):
        run_folder = self.folder / "run"
        done = self.with_folder("run", self.cut(), "--run-dir", run_folder)
        self.assert_refused(done, "error: ", "model.safetensors", "models.reference.checkpoint=")
        self.assertFalse(run_folder.exists())

    def test_a_tokenizer_is_needed_of_what_is_sampled_from(self):
        folder = self.folder / "without"
        shutil.copytree(MODEL, folder)
        (folder / "tokenizer.json").unlink()
        self.assertEqual(self.with_folder("validate", folder).stderr, "")  # of the reference
        actor = {"models.actor.checkpoint": str(folder), "models.reference.checkpoint": str(MODEL)}
        done = run("validate", PPO, *sets(**SMALL, **actor))
        self.assertEqual(done.returncode, DONE, done.stderr)
        for text in ("warning: ", "tokenizer", "model 'actor' is sampled from", "--set:"):
            self.assertIn(text, done.stderr)
        refused = run("run", PPO, "--run-dir", self.folder / "run", *sets(**SMALL, **actor))
        self.assert_refused(refused, "models.actor.checkpoint=", "model 'actor' is sampled from")

    def test_none_are_needed_where_they_begin_at_random(self):
        done = self.with_folder("validate", ROOT / "pipelines/models/tiny-random", **{"models.reference.init": "random"})
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))


if __name__ == "__main__":
    unittest.main()
