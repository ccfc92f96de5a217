"""Runs that are killed at random moments and resumed until they end: nothing of what they leave differs from a run that nobody
disturbed.

SLUICE_KILLS: how many kills in all, 20 unless told; SLUICE_SEED: of the moments."""

import json
import os
import pathlib
import random
import shutil
import subprocess
import tempfile
import time
import unittest

from run_traces import event_steps, slices
from support import DONE, FAILED, PPO, PROGRAM, ROOT, SMALL, WRONG_PIPELINE, Case, repeatable, run, sets, start, wait_for

KILLS = int(os.environ.get("SLUICE_KILLS", "20"))
SEED = int(os.environ.get("SLUICE_SEED", "1"))

PROMPTS = {"nodes.prompts.groups_per_iteration": 16, "nodes.generate.samples_per_prompt": 4,
           "nodes.generate.max_prompt_tokens": 8, "nodes.generate.max_new_tokens": 6,
           "models.actor.optimizer.learning_rate": 1e-3}
BUDGET = {"budget.tokens_in_flight": 8192, "budget.micro_batch_tokens": 512, "checkpoint.every_iterations": 2}
SAMPLES = '[nodes.samples]\ntype = "write_jsonl"\ninputs = ["%s"]\nfields = [%s]\n'
SCORED = SAMPLES % ("score", '"prompt", "response", "score"')

# By name: the pipeline, what is added to it, settings.
RUNS = {
    "ppo": ("ppo.toml", SCORED, SMALL | {"budget.micro_batch_tokens": 512, "checkpoint.every_iterations": 2,
                                         "pipeline.iterations": 9, "nodes.held_out.every_iterations": 2}),
    "grpo": ("grpo.toml", SCORED, PROMPTS | BUDGET | {"pipeline.iterations": 9}),
    "grpo, lag 2": ("grpo.toml", SCORED, PROMPTS | BUDGET | {"pipeline.iterations": 9, "schedule.policy_lag": 2}),
    "sft": ("sft.toml", SAMPLES % ("examples", '"tokens"'),
            BUDGET | {"nodes.examples.groups_per_iteration": 32, "nodes.examples.shuffle": True, "pipeline.iterations": 30}),
    "dapo": ("dapo.toml", SCORED, PROMPTS | BUDGET | {"pipeline.iterations": 9}),
    "ppo, saved in place": ("ppo.toml", SCORED,
                            SMALL | {"budget.micro_batch_tokens": 512, "checkpoint.every_iterations": 1,
                                     "checkpoint.copy": "none", "pipeline.iterations": 9, "nodes.held_out.every_iterations": 2}),
}


class Survival(Case):
    """One pipeline of RUNS in folders of its own."""

    def prepare(self, name):
        file, added, self.settings = RUNS[name]
        self.pipeline = self.write("p.toml", f'extends = "{ROOT / "pipelines" / file}"\n{added}')

    def words(self, folder, **settings):
        return ("run", self.pipeline, "--run-dir", folder, "--resume", "auto", *sets(**(self.settings | settings)))

    def undisturbed(self):
        begin = time.monotonic()
        done = run(*self.words(self.folder / "undisturbed"))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.seconds = time.monotonic() - begin
        return self.folder / "undisturbed"

    def killed_after(self, seconds, folder):
        """Whether it had to be killed. A run that ends before must have ended well."""
        process = start(*self.words(folder), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        try:
            _, errors = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            return True
        self.assertEqual(process.returncode, DONE, errors)
        return False

    def assert_same(self, folder, expected):
        read = [[json.loads(line) for line in (f / "metrics.jsonl").read_text().splitlines()] for f in (folder, expected)]
        self.assertEqual(*map(repeatable, read))
        self.assertEqual(*((f / "samples.jsonl").read_text() for f in (folder, expected)))
        self.assertEqual(slices(folder), slices(expected))
        self.assertEqual(event_steps(folder), event_steps(expected))
        self.assertEqual(set(event_steps(folder).values()), {1})
        self.assert_same_checkpoint(folder, expected)

    def assert_same_checkpoint(self, folder, expected):
        newest = (folder / "checkpoint").resolve()
        files = sorted(path.relative_to(newest) for path in newest.rglob("*") if path.is_file())
        other = (expected / "checkpoint").resolve()
        self.assertEqual(files, sorted(path.relative_to(other) for path in other.rglob("*") if path.is_file()))
        self.assertGreater(len(files), 5)
        for path in files:
            if path.name != "manifest.json":
                self.assertEqual((newest / path).read_bytes(), (other / path).read_bytes(), path)

    def assert_tidy(self, folder):
        """Nothing is left of what was interrupted."""
        left = [path.name for path in [*folder.iterdir(), *(folder / "checkpoints").iterdir()]
                if path.name == "lock" or path.suffix in (".tmp", ".removed")]
        self.assertEqual(left, [])


class Killed(Survival):
    def survive(self, name, kills):
        self.prepare(name)
        expected = self.undisturbed()
        moments = random.Random(f"{SEED} {name}")
        lives = done = 0
        while done < kills:
            folder = self.folder / f"life-{lives}"
            moment = []
            while done < kills:
                moment.append(moments.uniform(0, self.seconds))
                if not self.killed_after(moment[-1], folder):
                    break
                done += 1
            last = run(*self.words(folder))
            self.assertEqual(last.returncode, DONE, last.stderr)
            with self.subTest(name, life=lives, killed_after=moment):
                self.assert_same(folder, expected)
                if "nothing is left" not in last.stdout and "is complete" not in last.stdout:
                    self.assert_tidy(folder)  # else what it was killed at after its last save is still there
            lives += 1

    def test_ppo(self):
        self.survive("ppo", KILLS // len(RUNS))

    def test_ppo_saved_without_a_copy(self):
        self.survive("ppo, saved in place", KILLS // len(RUNS))

    def test_grpo(self):
        self.survive("grpo", KILLS // len(RUNS))

    def test_grpo_with_lag(self):
        self.survive("grpo, lag 2", KILLS // len(RUNS))

    def test_sft(self):
        self.survive("sft", KILLS // len(RUNS))

    def test_dapo_whose_filter_has_groups_replaced(self):
        self.survive("dapo", KILLS // len(RUNS))


class Resume(Survival):
    """What `resume` and `--resume auto` say and do."""

    def setUp(self):
        super().setUp()
        self.prepare("grpo")
        self.settings = self.settings | {"checkpoint.every_iterations": 1, "checkpoint.keep_last": 0}
        self.run_folder = self.folder / "run"

    def run_for(self, iterations):
        """A run that is complete after so many iterations; more of them are a harmless change."""
        done = run(*self.words(self.run_folder, **{"pipeline.iterations": iterations}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done

    def save_each(self, iterations):
        """Checkpoints 1 to `iterations`. While one is written a run goes on, so that it may pass over one; but it is always saved
        at its end."""
        for iteration in range(1, iterations + 1):
            self.run_for(iteration)

    def checkpoints(self):
        """{iterations: intact} of those that are there."""
        listed = json.loads(run("checkpoints", self.run_folder, "--format", "json").stdout)["checkpoints"]
        return {one["iterations"]: one["intact"] for one in listed}

    def resume(self, *words, iterations=5, **settings):
        return run("resume", self.run_folder, *words, *sets(**{"pipeline.iterations": iterations, **settings}))

    def assert_goes_on(self, done, iteration, iterations=5):
        self.assertEqual(done.returncode, DONE, done.stderr)
        first = next(line for line in done.stdout.splitlines() if " goes on from " in line)
        self.assertEqual(first, f"grpo goes on from {self.run_folder}/checkpoints/{iteration} with iteration "
                         f"{iteration + 1} of {iterations}")
        rows = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        self.assertEqual([row["iteration"] for row in rows], list(range(iterations)))

    def spoil(self, path):
        path = self.run_folder / "checkpoints" / path
        content = bytearray(path.read_bytes())
        content[-5] ^= 16
        path.write_bytes(content)

    def test_auto_starts_then_goes_on_and_at_the_end_has_nothing_to_do(self):
        first = self.run_for(2)
        self.assertNotIn("goes on", first.stdout)
        second = run(*self.words(self.run_folder, **{"pipeline.iterations": 4}))
        self.assert_goes_on(second, 2, 4)
        self.assertIn("going on with [pipeline] iterations: 2 -> 4\n", second.stdout)
        self.assertRegex(second.stdout, r"\ngrpo  iteration 3/4 ")
        self.assertRegex(second.stdout, r"\ngrpo finished: 4 iterations, the last 2 in ")
        before = (self.run_folder / "metrics.jsonl").read_text()
        third = run(*self.words(self.run_folder, **{"pipeline.iterations": 4}))
        self.assertEqual(third.returncode, DONE, third.stderr)
        self.assertIn(f"grpo is complete: 4 iterations, the last checkpoint is {self.run_folder}/checkpoints/4\n", third.stdout)
        self.assertEqual((self.run_folder / "metrics.jsonl").read_text(), before)

    def test_a_run_folder_may_be_a_link_to_one(self):
        there, link = self.folder / "there", self.folder / "latest"
        there.mkdir()
        link.symlink_to(there)
        first = run("run", PPO, "--run-dir", link, *sets(**(SMALL | {"pipeline.iterations": 1})))
        self.assertEqual(first.returncode, DONE, first.stderr)
        longer = run("resume", link, *sets(**{"pipeline.iterations": 2}))
        self.assertEqual(longer.returncode, DONE, longer.stderr)
        self.assertEqual((there / "checkpoint").resolve().name, "2")

    def test_a_run_folder_may_be_named_in_many_ways(self):
        for name in ("./run", "run/../other", "."):
            here = pathlib.Path(tempfile.mkdtemp(dir=self.folder))
            (here / "run").mkdir()
            for words in (["run", PPO, "--run-dir", name, *sets(**(SMALL | {"pipeline.iterations": 1}))],
                          ["resume", name, "--set", "pipeline.iterations=2"]):
                done = run(*words, cwd=here)
                self.assertEqual((done.returncode, done.stderr), (DONE, ""), f"{name}: {words[0]}")
            self.assertEqual((here / name / "checkpoint").resolve().name, "2")

    def test_checkpoints_may_go_to_a_folder_that_is_named_with_dots(self):
        done = run("run", PPO, "--run-dir", self.folder / "run",
                   *sets(**(SMALL | {"pipeline.iterations": 1, "checkpoint.folder": f"{self.folder}/run/../kept"})))
        self.assertEqual((done.returncode, done.stderr), (DONE, ""))
        self.assertEqual((self.folder / "run/checkpoint").resolve(), (self.folder / "kept/run/1").resolve())

    def test_a_run_that_was_killed_behind_its_last_checkpoint_is_brought_to_its_end(self):
        self.run_for(3)
        trace = self.run_folder / "trace.json"
        trace.write_text(trace.read_text().rstrip("]\n"))
        status = self.run_folder / "status.json"
        status.write_text(status.read_text().replace('"done"', '"running"'))
        before = [(self.run_folder / name).read_text() for name in ("metrics.jsonl", "samples.jsonl")]
        done = run(*self.words(self.run_folder, **{"pipeline.iterations": 3}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn(f"grpo goes on from {self.run_folder}/checkpoints/3, where nothing is left but to end\n", done.stdout)
        self.assertEqual({iteration for _, iteration, *_ in slices(self.run_folder)}, {0, 1, 2})
        self.assertEqual([(self.run_folder / name).read_text() for name in ("metrics.jsonl", "samples.jsonl")], before)
        self.assertEqual(json.loads(status.read_text())["state"], "done")

    def test_a_run_that_was_shortened_is_not_warned_of_what_it_was_not_warned_of_before(self):
        self.write("p.toml", f'extends = "{PPO}"\n[checkpoint]\nevery_iterations = 20\n')
        began = run("run", self.folder / "p.toml", "--run-dir", self.folder / "run",
                    *sets(**(SMALL | {"checkpoint.every_iterations": None})))
        self.assertEqual((began.returncode, began.stderr), (DONE, ""))
        self.assertEqual(run("resume", self.folder / "run").stderr, "")

    def test_costs_are_of_the_iterations_that_the_last_process_has_made(self):
        self.run_for(2)
        done = run(*self.words(self.run_folder, **{"pipeline.iterations": 3}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(json.loads((self.run_folder / "costs.json").read_text())["iterations"], 1)

    def test_auto_starts_over_where_there_is_no_checkpoint_yet(self):
        self.run_for(2)
        for path in (self.run_folder / "checkpoints").iterdir():
            path.rename(path.with_suffix(".tmp"))
        (self.run_folder / "checkpoint").unlink()
        again = run(*self.words(self.run_folder, **{"pipeline.iterations": 3}))
        self.assertEqual(again.returncode, DONE, again.stderr)
        self.assertIn(f"the run in {self.run_folder} was ended before its first checkpoint: it starts over\n", again.stdout)
        self.assertEqual([json.loads(line)["iteration"] for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()],
                         [0, 1, 2])
        self.assertEqual({json.loads(line)["iteration"] for line in (self.run_folder / "samples.jsonl").read_text().splitlines()},
                         {0, 1, 2})
        self.assertEqual(set(event_steps(self.run_folder).values()), {1})
        self.assert_tidy(self.run_folder)

    def test_auto_without_a_folder_uses_one_that_it_finds_again(self):
        for iterations in (1, 2):
            done = subprocess.run([PROGRAM, *map(str, ("run", self.pipeline, "--resume", "auto")),
                                   *sets(**(self.settings | {"pipeline.iterations": iterations}))],
                                  cwd=self.folder, capture_output=True, text=True, timeout=120)
            self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn("goes on from runs/grpo/checkpoints/1", done.stdout)

    def test_a_run_folder_knows_its_pipeline_also_after_a_change(self):
        self.run_for(2)
        self.assert_goes_on(self.resume(iterations=3, **{"budget.micro_batch_tokens": 1024}), 2, 3)
        self.assertIn("micro_batch_tokens = 1024", (self.run_folder / "pipeline.toml").read_text())
        done = run("resume", self.run_folder, *sets(**{"pipeline.iterations": 4}))
        self.assert_goes_on(done, 3, 4)
        self.assertNotIn("micro_batch_tokens", done.stdout)

    def test_what_a_checkpoint_is_written_from_may_change_and_changes_no_byte(self):
        for iterations, copy in ((2, "none"), (4, "memory"), (5, "none")):
            done = run(*self.words(self.run_folder, **{"pipeline.iterations": iterations, "checkpoint.copy": copy}))
            self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn('going on with [checkpoint] copy: "memory" -> "none"\n', done.stdout)
        self.settings = self.settings | {"pipeline.iterations": 5, "checkpoint.copy": "memory"}
        self.assert_same_checkpoint(self.run_folder, self.undisturbed())
        self.assert_tidy(self.run_folder)

    def test_an_older_checkpoint_can_be_chosen(self):
        self.save_each(4)
        missing = self.resume("--from", 7)
        self.assert_refused(missing, "has no checkpoint 7", "it has 1, 2, 3, 4")
        self.assert_goes_on(self.resume("--from", 2), 2)
        self.assertLessEqual({1, 2, 5}, set(self.checkpoints()))
        self.assertTrue(all(self.checkpoints().values()))

    def test_of_two_the_intact_one_is_used_and_the_damaged_one_is_named(self):
        self.save_each(3)
        self.spoil("3/actor/model.safetensors")
        done = self.resume()
        self.assert_goes_on(done, 2)
        self.assert_is_golden("cli/resume/newest_damaged.txt", done.stderr, {self.run_folder: "RUN"})
        self.assertLessEqual({1, 2, 5}, set(self.checkpoints()))
        self.assertTrue(all(self.checkpoints().values()))

    def test_when_none_is_intact_the_run_is_left_as_it_is(self):
        self.save_each(2)
        self.spoil("1/actor/model.safetensors")
        (self.run_folder / "checkpoints/2/manifest.json").unlink()
        before = (self.run_folder / "metrics.jsonl").read_text()
        for done in (self.resume(), run(*self.words(self.run_folder))):
            self.assertEqual(done.returncode, FAILED)
            self.assert_is_golden("cli/resume/none_intact.txt", done.stderr, {self.run_folder: "RUN"})
        self.assertEqual((self.run_folder / "metrics.jsonl").read_text(), before)
        chosen = self.resume("--from", 1)
        self.assertEqual(chosen.returncode, FAILED)
        self.assertIn("checkpoints/1 is damaged: actor/model.safetensors: tensor ", chosen.stderr)

    def test_a_run_whose_checkpoints_are_gone_is_left_as_it_is(self):
        """They were on a disk that is not mounted: the run started over, and its metrics were lost."""
        elsewhere, away = self.folder / "scratch", self.folder / "away"
        elsewhere.mkdir()
        self.settings["checkpoint.folder"] = str(elsewhere)
        self.run_for(2)
        before = (self.run_folder / "metrics.jsonl").read_text()
        elsewhere.rename(away)
        for done in (self.resume(**{"checkpoint.folder": str(elsewhere)}), run(*self.words(self.run_folder))):
            self.assertEqual(done.returncode, FAILED, done.stdout + done.stderr)
            self.assertIn(f"{self.run_folder}/checkpoints leads to nothing", done.stderr)
            self.assertIn(f"remove {self.run_folder}/checkpoints and {self.run_folder}/checkpoint to start over", done.stderr)
            self.assertIn("where they were moved, say so with --set checkpoint.folder=FOLDER", done.stderr)
        self.assertEqual((self.run_folder / "metrics.jsonl").read_text(), before)
        self.assert_goes_on(self.resume(**{"checkpoint.folder": str(away)}), 2)

    def test_checkpoints_of_another_run_are_refused_before_anything_is_done(self):
        elsewhere = self.folder / "scratch"
        self.settings["checkpoint.folder"] = str(elsewhere)
        self.run_for(2)
        other = self.folder / "other" / self.run_folder.name
        words = [other if str(word) == str(self.run_folder) else word for word in self.words(self.run_folder)]
        for _ in range(2):
            done = run(*words)
            self.assert_refused(done, f"{elsewhere}/{self.run_folder.name} already holds the checkpoints of another run")
            self.assertFalse((other / "metrics.jsonl").exists())

    def test_a_run_whose_checkpoints_were_removed_starts_over_when_it_is_told_to(self):
        self.run_for(2)
        shutil.rmtree(self.run_folder / "checkpoints")
        refused = self.resume()
        self.assertEqual(refused.returncode, FAILED)
        self.assertIn(f"remove {self.run_folder}/checkpoint to start over", refused.stderr)
        (self.run_folder / "checkpoint").unlink()
        self.assertIn("it starts over", self.resume().stdout)

    def test_a_checkpoint_that_was_renamed_is_none(self):
        self.save_each(3)
        (self.run_folder / "checkpoints/3").rename(self.run_folder / "checkpoints/12")
        self.assertEqual(self.checkpoints(), {1: True, 2: True, 12: False})
        done = self.resume()
        self.assert_goes_on(done, 2)
        self.assertIn("checkpoints/12/manifest.json is that of checkpoint 3: the folder was renamed", done.stderr)

    def test_a_run_goes_on_without_the_event_file_of_before(self):
        self.run_for(2)
        for file in self.run_folder.glob("events*"):
            file.unlink()
        done = self.resume()
        self.assert_goes_on(done, 2)
        self.assertIn("is gone, and with it what TensorBoard shows of what came before", done.stderr)
        self.assertEqual(set(self.checkpoints().values()), {True})

    def test_changes_of_results_are_listed_and_need_a_word(self):
        self.run_for(2)
        changed = {"models.actor.optimizer.learning_rate": 1e-5, "nodes.generate.max_new_tokens": 5,
                   "budget.micro_batch_tokens": 256, "nodes.generate.max_running_samples": 8}
        before = (self.run_folder / "pipeline.toml").read_text(), (self.run_folder / "metrics.jsonl").read_text()
        refused = self.resume(**changed)
        self.assert_refused(refused, "[nodes.generate] max_new_tokens: 6 -> 5", "learning_rate", "--accept-changes")
        self.assert_is_golden("cli/resume/changed.txt", refused.stderr, {self.run_folder: "RUN"})
        self.assertEqual(before,
                         ((self.run_folder / "pipeline.toml").read_text(), (self.run_folder / "metrics.jsonl").read_text()))
        accepted = self.resume("--accept-changes", **changed)
        self.assert_goes_on(accepted, 2)
        self.assertIn("going on with [nodes.generate] max_new_tokens: 6 -> 5 (accepted: results change)\n", accepted.stdout)
        self.assertIn("going on with [budget] micro_batch_tokens: 512 -> 256\n", accepted.stdout)

    def test_what_was_accepted_is_not_asked_for_again(self):
        self.run_for(2)
        changed = {"models.actor.optimizer.learning_rate": 1e-5}
        killed = start("resume", self.run_folder, "--accept-changes",
                       *sets(**{"pipeline.iterations": 500, "checkpoint.every_iterations": 0}, **changed))
        wait_for("an iteration", lambda: len((self.run_folder / "metrics.jsonl").read_text().splitlines()) > 2)
        killed.kill()
        killed.wait()
        self.assertIn("learning_rate", (self.run_folder / "accepted_changes.json").read_text())
        self.assert_refused(self.resume(**{"nodes.generate.max_new_tokens": 5}), "max_new_tokens: 6 -> 5")
        self.assert_goes_on(self.resume(), 2)
        again = self.resume(**{"pipeline.iterations": 6})
        self.assertNotIn("accepted", again.stdout)
        self.assertFalse((self.run_folder / "accepted_changes.json").exists())

    def test_other_files_under_the_same_names_need_a_word(self):
        rows = (ROOT / "pipelines/data/arithmetic_train.jsonl").read_text()
        data = self.folder / "rows.jsonl"
        data.write_text(rows)
        self.settings = self.settings | {"nodes.prompts.path": str(data)}
        self.run_for(2)
        data.write_text(rows.replace('"1', '"2', 1))
        before = (self.run_folder / "metrics.jsonl").read_text()
        self.assert_refused(self.resume(), f"path of [nodes.prompts] ({data}): {len(rows)} bytes, checksum", "--accept-changes")
        self.assertEqual(before, (self.run_folder / "metrics.jsonl").read_text())
        data.write_text(rows)
        self.assert_goes_on(self.resume(iterations=3), 2, 3)
        data.write_text(rows.replace('"1', '"2', 1))
        self.assert_goes_on(self.resume("--accept-changes", iterations=4), 3, 4)
        self.assert_goes_on(self.resume(), 4)  # what was accepted is what it reads now

    def test_a_run_that_is_complete_is_not_that_of_another_pipeline(self):
        self.run_for(5)
        self.assertIn("is complete", self.resume().stdout)
        self.assert_refused(self.resume(**{"models.actor.optimizer.learning_rate": 1e-5}), "learning_rate", "--accept-changes")
        other = run("run", ROOT / "pipelines/sft.toml", "--run-dir", self.run_folder, "--resume", "auto", "--set",
                    "pipeline.iterations=5")
        self.assertEqual(other.returncode, WRONG_PIPELINE, other.stdout)
        self.assertIn("the pipeline has changed since the checkpoint was saved", other.stderr)
        self.assertRegex(other.stderr, r"\n +(= )?and \d+ more keys\n")

    def test_a_run_that_went_on_is_simulated(self):
        self.run_for(2)
        self.assert_goes_on(self.resume(), 2)
        done = run("simulate", self.run_folder / "pipeline.toml", "--costs", self.run_folder)
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_adapters_may_be_saved_otherwise(self):
        self.settings |= {"models.actor.lora": "{ rank = 2 }"}
        self.run_for(2)
        done = self.resume(**{"models.actor.lora.save": "adapter"})
        self.assert_goes_on(done, 2)
        self.assertIn('lora.save: "both" -> "adapter"\n', done.stdout)
        self.assertTrue((self.run_folder / "checkpoint/actor/adapter_model.safetensors").exists())

    def test_what_is_no_run_is_refused(self):
        self.assert_refused(run("resume", self.folder / "nothing"), "is not a folder")
        self.assert_refused(run("resume", self.folder), "holds no run", "--resume auto")


if __name__ == "__main__":
    unittest.main()
