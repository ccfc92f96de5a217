"""Models by their id on the Hub, out of a cache that is laid out as huggingface_hub does, and paths with `~` and variables."""

import hashlib
import json
import os
import shutil
import unittest

from support import DONE, MODEL, PPO, ROOT, SMALL, Case, run, sets

COMMIT = "7ae557604adf67be50417f59c2c2f167def9a775"
ID = "sluice-tests/Tiny-Arithmetic"


class Hub(Case):
    def setUp(self):
        super().setUp()
        self.cache = self.folder / "huggingface/hub"
        model = self.cache / f"models--{ID.replace('/', '--')}"
        (model / "blobs").mkdir(parents=True)
        (model / "refs").mkdir()
        (model / "refs/main").write_text(COMMIT)
        self.snapshot = model / "snapshots" / COMMIT
        self.snapshot.mkdir(parents=True)
        for file in MODEL.iterdir():
            blob = hashlib.sha1(file.name.encode()).hexdigest()
            shutil.copy(file, model / "blobs" / blob)
            (self.snapshot / file.name).symlink_to(f"../../blobs/{blob}")
        others = ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME")
        self.machine = ({name: text for name, text in os.environ.items() if name not in others} |
                        {"XDG_CACHE_HOME": str(self.folder)})

    def ask(self, *arguments, machine=()):
        return run(*arguments, env=self.machine | dict(machine))

    def models(self, text):
        return {f"models.{name}.checkpoint": json.dumps(text) for name in ("actor", "reference", "critic")}

    def test_a_model_of_the_cache_is_trained_and_its_snapshot_is_named(self):
        folder = self.folder / "run"
        done = self.ask("run", PPO, "--run-dir", folder, *sets(**(SMALL | self.models(ID))))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn(f'checkpoint = "{self.snapshot}"', (folder / "pipeline.toml").read_text())
        written = folder / "checkpoint/actor/tokenizer.json"
        self.assertFalse(written.is_symlink())
        self.assertEqual(written.read_bytes(), (MODEL / "tokenizer.json").read_bytes())
        exported = self.folder / "exported"
        done = run("checkpoints", "export", folder, "--model", "actor", "--to", exported)
        self.assertEqual(done.returncode, DONE, done.stderr)
        card = (exported / "README.md").read_text()
        self.assertIn(f'\nbase_model: "{ID}"\n', card)
        self.assertIn(f"at commit `{COMMIT}`", card)

    def test_the_plan_shows_the_folder_that_was_found(self):
        for text in (ID, ID + "@main", ID + "@" + COMMIT[:7]):
            done = self.ask("plan", PPO, "--config", *sets(**self.models(text)))
            self.assertEqual(done.stdout.count(f'checkpoint = "{self.snapshot}"'), 3, done.stderr)

    def test_model_commands_take_ids(self):
        for command in ("info", "verify"):
            named, by_path = self.ask("model", command, ID), run("model", command, MODEL)
            self.assertEqual(named.returncode, DONE, named.stderr)
            self.assertEqual(named.stdout.replace(str(self.snapshot), str(MODEL)), by_path.stdout)

    def test_a_model_that_the_cache_lacks_is_refused_with_the_command_that_loads_it(self):
        for done in (self.ask("validate", PPO, *sets(**{"models.actor.checkpoint": '"Qwen/Qwen3-4B@v1"'})),
                     self.ask("model", "info", "Qwen/Qwen3-4B@v1")):
            self.assert_refused(done, "and no such model in Hugging Face's cache", f"the cache is {self.cache}",
                                "hf download Qwen/Qwen3-4B --revision v1")

    def test_a_home_folder_and_variables_in_paths_of_models_and_data(self):
        data = ({"nodes.prompts.path": '"~/data/arithmetic_train.jsonl"'} |
                self.models("$ROOT_OF_IT/pipelines/models/tiny-arithmetic"))
        machine = {"HOME": str(ROOT / "pipelines"), "ROOT_OF_IT": str(ROOT)}
        done = self.ask("plan", PPO, "--config", *sets(**data), machine=machine)
        self.assertIn(f'path = "{ROOT}/pipelines/data/arithmetic_train.jsonl"', done.stdout, done.stderr)
        self.assertIn(f'checkpoint = "{MODEL}"', done.stdout)

    def test_a_folder_with_a_dollar_sign_stays_what_it_is_in_the_effective_pipeline(self):
        odd = self.folder / "a $HOME"
        shutil.copytree(MODEL, odd)
        text = str(odd).replace("$", "$$")
        done = self.ask("plan", PPO, "--config", *sets(**self.models(text)))
        self.assertIn(f'checkpoint = "{text}"', done.stdout, done.stderr)
        again = self.ask("plan", self.write("again.toml", done.stdout), "--config")
        self.assertIn(f'checkpoint = "{text}"', again.stdout, again.stderr)


if __name__ == "__main__":
    unittest.main()
