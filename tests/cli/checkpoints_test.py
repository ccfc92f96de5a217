"""The checkpoints of a run: what is listed, what of them is damaged, which are removed, and what is handed on.

SLUICE_FLIPS: how many bits are flipped and files cut short in all, 60 unless told; SLUICE_SEED: which."""

import json
import os
import pathlib
import random
import re
import shutil
import struct
import unittest

from support import DONE, FAILED, MODEL, PPO, SMALL, WRONG_USAGE, Case, read_safetensors, run, sets

FLIPS = int(os.environ.get("SLUICE_FLIPS", "60"))
SEED = int(os.environ.get("SLUICE_SEED", "1"))


class Checkpoints(Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.shared = Checkpoints("setUp")
        Case.setUp(cls.shared)
        cls.addClassCleanup(cls.shared.doCleanups)
        cls.made = cls.shared.folder / "run"
        for iterations in range(1, 5):  # a run is always saved at its end
            done = run("run", PPO, "--resume", "auto", "--run-dir", cls.made,
                       *sets(**SMALL | {"pipeline.iterations": iterations, "checkpoint.keep_last": 0}))
            cls.shared.assertEqual(done.returncode, DONE, done.stderr)

    def setUp(self):
        super().setUp()
        self.run_folder = self.folder / "run"
        shutil.copytree(self.made, self.run_folder, symlinks=True)

    def output(self, *words, code=DONE):
        done = run("checkpoints", *words)
        self.assertEqual(done.returncode, code, done.stderr + done.stdout)
        return done.stdout

    def listed(self):
        return json.loads(self.output("list", self.run_folder, "--format", "json"))["checkpoints"]

    def names(self):
        return sorted(path.name for path in (self.run_folder / "checkpoints").iterdir())

    def spoil(self, path, at=-5):
        path = self.run_folder / "checkpoints" / path
        content = bytearray(path.read_bytes())
        content[at] ^= 16
        path.write_bytes(content)

    def assert_golden(self, name, text):
        text = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-31T18:00:00Z", text)
        text = re.sub(r"\d+(\.\d+)? [kM]B", "N MB", text)
        text = re.sub(r"  0(\.\d+)? +N MB +", "  SCORE  N MB  ", text)
        self.assert_is_golden(f"cli/checkpoints/{name}", text, {self.run_folder: "RUN"})


class Elsewhere(Case):
    """Checkpoints on another disk: the command line says so, each time that a run would write there."""

    def test_only_where_the_command_line_says_so(self):
        disk, run_folder = self.folder / "disk", self.folder / "run"
        there = sets(**{"checkpoint.folder": str(disk)})
        written = self.write("elsewhere.toml", f'extends = "{PPO}"\n[checkpoint]\nfolder = "{disk}"\n')
        self.assert_refused(run("validate", written), "elsewhere.toml:3:10", "--set checkpoint.folder=")

        small = sets(**SMALL | {"pipeline.iterations": 1, "checkpoint.keep_last": 0})
        done = run("run", PPO, "--run-dir", run_folder, *small, *there)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(os.readlink(run_folder / "checkpoints"), str(disk / "run"))

        more = sets(**{"pipeline.iterations": 2})
        self.assert_refused(run("resume", run_folder, *more), "pipeline.toml:", f"--set checkpoint.folder={disk}")
        done = run("resume", run_folder, *more, *there)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(sorted(path.name for path in (disk / "run").iterdir()), ["1", "2"])

        self.assert_refused(run("checkpoints", "prune", run_folder, "--keep-last", "1"), "leads out of the run folder",
                            "checkpoints prune --folder")
        done = run("checkpoints", "prune", run_folder, "--keep-last", "1", "--folder", disk)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual([path.name for path in (disk / "run").iterdir()], ["2"])


class Room(Case):
    def planned_and_taken(self, name, pipeline, **settings):
        """Bytes of a checkpoint: by the plan, and of the tensors in the last of a run."""
        overrides = sets(**SMALL | {"pipeline.iterations": 3, "checkpoint.every_iterations": 1} | settings)
        plan = json.loads(run("plan", pipeline, "--format", "json", *overrides).stdout)["checkpoints"]
        self.assertEqual(plan["at_a_time"], 3)
        done = run("run", pipeline, "--run-dir", self.folder / name, *overrides)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertNotIn("a checkpoint takes", done.stderr)
        return (plan["bytes_each"],
                sum(path.stat().st_size for path in (self.folder / name / "checkpoint/").rglob("*.safetensors")))

    def test_the_plan_says_how_much_a_checkpoint_takes(self):
        for name, settings in (("ppo", {}), ("lag", {"schedule.policy_lag": 2}), ("lora", {"models.actor.lora": "{ rank = 8 }"}),
                               ("adapter", {"models.actor.lora": '{ rank = 8, save = "adapter" }'})):
            with self.subTest(name):
                planned, taken = self.planned_and_taken(name, PPO, **settings)
                self.assertAlmostEqual(taken / planned, 1, delta=0.03)


class List(Checkpoints):
    def test_each_has_a_line_with_its_score_and_what_is_damaged(self):
        self.spoil("2/actor/model.safetensors")
        os.remove(self.run_folder / "checkpoints/3/critic.optimizer.safetensors")
        self.assert_golden("list.txt", self.output(self.run_folder))

    def test_the_forms_are_one(self):
        text = self.output("list", self.run_folder)
        self.assertEqual(self.output(self.run_folder), text)
        self.assertEqual(self.output(self.run_folder, "list"), text)

    def test_programs_read_the_same(self):
        self.spoil("4/actor/model.safetensors")
        metrics = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        listed = self.listed()
        self.assertEqual([one["iterations"] for one in listed], [1, 2, 3, 4])
        self.assertEqual([one["intact"] for one in listed], [True, True, True, False])
        self.assertRegex(listed[3]["damage"],
                         r'^actor/model.safetensors: tensor "[a-z0-9_.]+" has another checksum than when it was saved$')
        for row, one in zip(metrics, listed):
            self.assertEqual(one["metrics"]["reward/score_mean"], row["reward/score_mean"])
            size = sum(path.stat().st_size for path in pathlib.Path(one["folder"]).rglob("*") if path.is_file())
            self.assertEqual(one["bytes"], size)

    def test_a_run_without_checkpoints_and_a_folder_without_a_run(self):
        shutil.rmtree(self.run_folder / "checkpoints")
        self.assertEqual(self.output(self.run_folder), f"{self.run_folder} has no checkpoints\n")
        self.assert_refused(run("checkpoints", self.folder), "is not the folder of a run")


class Verify(Checkpoints):
    def test_says_of_each_that_it_is_good(self):
        self.assert_golden("verify.txt", self.output("verify", self.run_folder))

    def test_damage_is_named_and_the_program_fails(self):
        self.spoil("2/actor.optimizer.safetensors")
        os.remove(self.run_folder / "checkpoints/3/actor/tokenizer.json")
        path = self.run_folder / "checkpoints/4/critic/config.json"
        path.write_bytes(path.read_bytes()[:10])
        self.spoil("1/manifest.json")
        self.assert_golden("verify_damaged.txt", self.output("verify", self.run_folder, code=FAILED))

    def test_one_alone(self):
        self.spoil("2/actor/model.safetensors")
        self.assertEqual(len(self.output("verify", self.run_folder, "1").splitlines()), 1)
        self.output("verify", self.run_folder, "2", code=FAILED)
        self.assert_refused(run("checkpoints", "verify", self.run_folder, "9"), "has no checkpoint 9")

    def tensor_at(self, path, at):
        """The tensor that the byte belongs to; None: the header."""
        content = path.read_bytes()
        (length,) = struct.unpack("<Q", content[:8])
        header = json.loads(content[8:8 + length])
        for name, entry in header.items():
            if name != "__metadata__" and entry["data_offsets"][0] <= at - 8 - length < entry["data_offsets"][1]:
                return name
        return None

    def test_any_flipped_bit_and_any_cut_is_found_and_named(self):
        moments = random.Random(SEED)
        checkpoint = self.run_folder / "checkpoints/4"
        files = sorted(path for path in checkpoint.rglob("*") if path.is_file())
        for kept in ("1", "2", "3"):
            shutil.rmtree(self.run_folder / "checkpoints" / kept)
        for number in range(FLIPS):
            path = moments.choice(files)
            name, content = path.relative_to(checkpoint), path.read_bytes()
            with self.subTest(number, file=str(name)):
                expected = f"{checkpoint}/{name}"
                if moments.random() < 0.3:
                    path.write_bytes(content[:moments.randrange(len(content))])
                else:
                    at = moments.randrange(len(content))
                    tensor = self.tensor_at(path, at) if path.suffix == ".safetensors" else None
                    if tensor is not None:
                        expected += f': tensor "{tensor}" '
                    spoiled = bytearray(content)
                    spoiled[at] ^= 1 << moments.randrange(8)
                    path.write_bytes(spoiled)
                said = self.output("verify", self.run_folder, code=FAILED)
                self.assertEqual(len(said.splitlines()), 1, said)
                self.assertTrue(said.startswith(expected), f"{said} instead of {expected}")
            path.write_bytes(content)
        self.output("verify", self.run_folder)


class Prune(Checkpoints):
    def test_does_what_the_run_would_do(self):
        pipeline = self.run_folder / "pipeline.toml"
        pipeline.write_text(re.sub(r"keep_last = 0", "keep_last = 3", pipeline.read_text()))
        before = self.names()
        self.assert_golden("prune_dry.txt", self.output("prune", self.run_folder, "--dry-run"))
        self.assertEqual(self.names(), before)
        self.assert_golden("prune.txt", self.output("prune", self.run_folder))
        self.assertEqual(self.names(), ["2", "3", "4"])
        self.assertEqual((self.run_folder / "checkpoint").resolve().name, "4")

    def test_the_best_stays_too(self):
        rows = [json.loads(line)["rollout/response_length_mean"]
                for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        for best, choose in (("highest", max), ("lowest", min)):
            with self.subTest(best):
                shutil.rmtree(self.run_folder)
                shutil.copytree(self.made, self.run_folder, symlinks=True)
                self.output("prune", self.run_folder, "--keep-last", "1", "--keep-best", "rollout/response_length_mean", "--best",
                            best)
                kept = {row["iterations"] for row in self.listed()}
                self.assertEqual(len(kept - {4}), 0 if choose(rows) == rows[3] else 1)
                self.assertIn(choose(rows), [rows[n - 1] for n in kept])

    def test_a_metric_that_no_run_has_is_refused(self):
        self.assert_refused(run("checkpoints", "prune", self.run_folder, "--keep-best", "score_meen"),
                            "no checkpoint has a metric", "reward/score_mean")
        self.assertEqual(self.names(), ["1", "2", "3", "4"])

    def test_what_a_kill_has_left_goes_too(self):
        for name in ("4.tmp", "1.removed"):
            shutil.copytree(self.run_folder / "checkpoints/1", self.run_folder / "checkpoints" / name)
        for dry, word in ((["--dry-run"], "would remove"), ([], "removed")):
            said = self.output("prune", self.run_folder, *dry)
            for name in ("4.tmp", "1.removed"):
                self.assertIn(f"{word}: {self.run_folder}/checkpoints/{name}, left of a save that was cut off\n", said)
            left = {path.name for path in (self.run_folder / "checkpoints").iterdir()}
            self.assertEqual({"4.tmp", "1.removed"} & left, {"4.tmp", "1.removed"} if dry else set())
        self.assertEqual(self.names(), ["1", "2", "3", "4"])

    def test_damaged_ones_count_for_nothing_and_stay(self):
        self.spoil("4/actor/model.safetensors")
        said = self.output("prune", self.run_folder, "--keep-last", "2")
        self.assertEqual(self.names(), ["2", "3", "4"])
        self.assertIn("checkpoints/4 is damaged: actor/model.safetensors: tensor", said)


class Export(Checkpoints):
    MADE = {"README.md", "generation_config.json"}

    def test_the_files_are_those_of_the_checkpoint_and_two_more(self):
        target = self.folder / "exported"
        self.output("export", self.run_folder, "--model", "actor", "--to", target)
        source = self.run_folder / "checkpoints/4/actor"
        self.assertEqual({path.name: path.read_bytes() for path in target.iterdir() if path.name not in self.MADE},
                         {path.name: path.read_bytes() for path in source.iterdir()})
        self.assertLessEqual(self.MADE, {path.name for path in target.iterdir()})
        self.assertEqual([path.name for path in self.folder.iterdir() if "exported" in path.name], ["exported"])

    def card(self, *words, model="actor", **options):
        target = self.folder / f"card{len(list(self.folder.iterdir()))}"
        done = run("checkpoints", "export", self.run_folder, *words, "--model", model, "--to", target, **options)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return (target / "README.md").read_text()

    def test_the_card_tells_of_the_run(self):
        card = re.sub(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", "2026-01-31T18:00:00Z",
                      self.card("3", "--license", "mit", env=os.environ | {"HOME": str(MODEL.parent.parent)}))
        self.assertIn("\nlicense: \"mit\"\n", card)
        rows = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
        scores = [row["reward/score_mean"] for row in rows]
        self.assertIn(f"| `reward/score_mean` | {scores[0]:.4g} | {scores[2]:.4g} | {max(scores[:3]):.4g} (iteration ", card)
        held_out = rows[0]["held_out/reward/score_mean"]
        self.assertIn(f"| `held_out/reward/score_mean` | {held_out:.4g}, before training | ", card)
        state = json.loads((self.run_folder / "checkpoints/3/manifest.json").read_text())["nodes"]["prompts"]["values"]
        self.assertIn(f"| `prompts` | `arithmetic_train.jsonl` | `{state['fingerprint']:08x}` | {state['rows_drawn']} |", card)
        self.assertIn("ppo: `train_ppo` with the objective `ppo_clip`", card)
        self.assertIn(f'checkpoint = "~/models/{MODEL.name}"', card)
        self.assertNotIn(str(MODEL), card)

    def test_the_pipeline_of_the_card_is_that_of_the_run(self):
        text = self.card().partition("```toml\n")[2].partition("\n```\n")[0]
        shown, ran = (run("plan", file, "--config")
                      for file in (self.write("shown.toml", text), self.run_folder / "pipeline.toml"))
        self.assertEqual(shown.returncode, DONE, shown.stderr)
        values = [re.sub(r" +# .*", "", done.stdout) for done in (shown, ran)]
        self.assertEqual(values[0], values[1])

    def test_a_license_is_that_of_the_base_model_or_to_be_filled_in(self):
        self.assertIn("\nlicense: other  # fill in", self.card())
        base = self.folder / "base"
        shutil.copytree(MODEL, base)
        (base / "README.md").write_text("---\nlicense: other\nlicense_name: 'own'\nlicense_link: LICENSE\n---\nlicense: mit\n")
        small = sets(**SMALL | {"pipeline.iterations": 1, "models.actor.checkpoint": str(base)})
        self.run_folder = self.folder / "other"
        self.assertEqual(run("run", PPO, "--run-dir", self.run_folder, *small).returncode, DONE)
        self.assertIn('license: "other"\nlicense_name: "own"\nlicense_link: "LICENSE"\n', self.card())

    def exported_after(self, **settings):
        self.run_folder = self.folder / "other"
        self.assertEqual(run("run", PPO, "--run-dir", self.run_folder, *sets(**SMALL | settings)).returncode, DONE)
        self.output("export", self.run_folder, "--model", "actor", "--to", self.folder / "exported")
        return self.folder / "exported"

    # Of any text that a file may have such a thing in; a scorer's needs a server.
    def test_no_password_goes_out(self):
        card = (self.exported_after(**{"pipeline.iterations": 1,
                                       "nodes.generate.stop": '["http://me:s3cret@host"]'}) / "README.md").read_text()
        self.assertIn('"http://***@host"', card)
        self.assertNotIn("s3cret", card)

    def test_a_scheduled_temperature_is_that_of_the_end(self):
        for iterations, last in ((2, 1.0), (4, 0.8)):
            with self.subTest(iterations=iterations):
                alike = {f"nodes.{node}.temperature": "{from=1.2,to=0.8,over=2}" for node in ("generate", "reference", "train")}
                folder = self.exported_after(**{"pipeline.iterations": iterations}, **alike)
                rows = [json.loads(line) for line in (self.run_folder / "metrics.jsonl").read_text().splitlines()]
                self.assertAlmostEqual(rows[-1]["rollout/temperature"], last)
                self.assertAlmostEqual(json.loads((folder / "generation_config.json").read_text())["temperature"], last)
                shutil.rmtree(folder)
                shutil.rmtree(self.run_folder)

    def test_a_model_of_the_hub_is_named(self):
        self.assertNotIn("\nbase_model:", self.card())
        self.assertIn('\nbase_model: "org/tiny"\n', self.card("--base-model", "org/tiny"))
        refused = run("checkpoints", "export", self.run_folder, "--model", "actor", "--to", self.folder / "x", "--base-model",
                      "../tiny")
        self.assert_refused(refused, "no id of a model of the Hub")

    def test_a_run_without_its_metrics_has_a_card_too(self):
        os.remove(self.run_folder / "metrics.jsonl")
        card = self.card(model="critic")
        self.assertNotIn("## Training", card)
        self.assertIn("pipeline_tag: text-classification", card)

    def test_a_card_has_the_first_and_last_value_of_a_long_run_that_went_on(self):
        metrics = self.run_folder / "metrics.jsonl"
        metrics.write_text("".join(json.dumps({"iteration": i, "reward/score_mean": [0.5, 0.25, 0.75, 0.375][i % 4]}) + "\n"
                                   for i in range(1000)))
        self.assertIn("| `reward/score_mean` | 0.5 | 0.375 | 0.75 (iteration 3) |", self.card())

    def test_a_checkpoint_of_the_run_is_no_place_for_it(self):
        for place in ("checkpoints/99", "checkpoint/actor/best", "./checkpoint/../99"):
            with self.subTest(place):
                self.assert_refused(run("checkpoints", "export", self.run_folder, "--to", self.run_folder / place, "--model",
                                        "actor"), "is among the checkpoints of the run")
                self.assertFalse((self.run_folder / place).exists())

    def test_what_is_no_folder_has_no_model(self):
        self.assert_refused(run("checkpoints", "export", self.folder / "none", "--to", self.folder / "x"), "none is not a folder")

    def test_damaged_metrics_are_warned_of_and_the_model_is_exported(self):
        metrics = self.run_folder / "metrics.jsonl"
        sound = metrics.read_text()
        metrics.write_text("[]\n" + sound)
        told = run("checkpoints", "export", self.run_folder, "--model", "actor", "--to", self.folder / "told")
        self.assertEqual(told.returncode, DONE)
        self.assertIn("1 line of the file left out", told.stderr)
        self.assertIn("## Training", (self.folder / "told/README.md").read_text())
        metrics.write_text("[]\n")
        target = self.folder / "exported"
        done = run("checkpoints", "export", self.run_folder, "--model", "actor", "--to", target)
        self.assertEqual(done.returncode, DONE)
        self.assertIn("metrics.jsonl, line 1 is no metrics of an iteration", done.stderr)
        self.assertNotIn("## Training", (target / "README.md").read_text())

    def test_adapters_are_exported_only_where_there_are_some(self):
        self.assert_refused(run("checkpoints", "export", self.run_folder, "--model", "actor", "--to", self.folder / "x", "--save",
                                "adapter"), "holds no adapters", "save = \"both\"")

    def test_a_narrower_type_rounds_to_the_nearest(self):
        for dtype, code, width in (("bfloat16", "BF16", 2), ("float16", "F16", 2), ("float32", "F32", 4)):
            with self.subTest(dtype):
                target = self.folder / dtype
                self.output("export", self.run_folder, "2", "--model", "actor", "--to", target, "--dtype", dtype)
                whole = read_safetensors(self.run_folder / "checkpoints/2/actor/model.safetensors")
                narrow = read_safetensors(target / "model.safetensors")
                self.assertEqual({name: entry[1] for name, entry in narrow.items()},
                                 {name: entry[1] for name, entry in whole.items()})
                for name, (kind, _, data) in narrow.items():
                    self.assertEqual((kind, len(data)), (code, len(whole[name][2]) // 4 * width))
                config = json.loads((target / "config.json").read_text())
                self.assertEqual(config.get("dtype", config.get("torch_dtype")), dtype)
                verified = run("model", "verify", target)
                self.assertEqual(verified.returncode, DONE, verified.stdout)
                for name in ("model.norm.weight", "lm_head.weight"):
                    if name in narrow:
                        self.assert_rounded(narrow[name], whole[name])

    def assert_rounded(self, narrow, whole):
        values = struct.unpack(f"<{len(whole[2]) // 4}f", whole[2])
        if narrow[0] == "F16":
            expected = struct.pack(f"<{len(values)}e", *values)
        elif narrow[0] == "F32":
            expected = whole[2]
        else:
            words = struct.unpack(f"<{len(values)}I", whole[2])
            expected = struct.pack(f"<{len(values)}H", *((word + 0x7fff + (word >> 16 & 1)) >> 16 for word in words))
        self.assertEqual(narrow[2], expected)

    def test_a_critic_keeps_its_head(self):
        target = self.folder / "critic"
        self.output("export", self.run_folder, "--model", "critic", "--to", target, "--dtype", "bfloat16")
        self.assertIn("score.weight", read_safetensors(target / "model.safetensors"))
        self.assertEqual(run("model", "verify", target).returncode, DONE)

    def test_what_cannot_be_exported_is_refused_and_leaves_nothing(self):
        target = self.folder / "exported"
        self.assert_refused(run("checkpoints", "export", self.run_folder, "--to", target), "which model", "actor, critic")
        self.assert_refused(run("checkpoints", "export", self.run_folder, "--to", target, "--model", "reference"),
                            "holds no model", "actor, critic")
        self.assert_refused(run("checkpoints", "export", self.run_folder, "--to", self.run_folder, "--model", "actor"),
                            "is there already")
        self.spoil("3/critic/model.safetensors")
        damaged = run("checkpoints", "export", self.run_folder, "3", "--to", target, "--model", "actor")
        self.assertEqual(damaged.returncode, FAILED, damaged.stderr)
        self.assertIn("checkpoints/3 is damaged: critic/model.safetensors: tensor", damaged.stderr)
        self.assertEqual(run("checkpoints", "export", self.run_folder, "--model", "actor").returncode, WRONG_USAGE)
        self.assertFalse(target.exists())


if __name__ == "__main__":
    unittest.main()
