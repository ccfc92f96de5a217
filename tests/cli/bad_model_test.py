"""Model folders that are damaged, incomplete or unknown: the message names the file, the tensor and what was expected."""

import json
import re
import shutil
import struct
import unittest

from support import DONE, FAILED, MODEL, PPO, SMALL, WRONG_PIPELINE, Case, read_safetensors, run, safetensors, sets


class BadModel(Case):
    def setUp(self):
        super().setUp()
        self.model = self.folder / "model"
        shutil.copytree(MODEL, self.model)
        self.weights = self.model / "model.safetensors"
        self.tensors = read_safetensors(self.weights)
        self.name = sorted(self.tensors)[0]

    def run_with_model(self):
        return run("run", PPO, "--run-dir", self.folder / "run", *sets(**SMALL, **{"models.actor.checkpoint": str(self.model)}))

    def refuse(self, *texts, problems=1):
        self.assert_refused(self.run_with_model(), *texts, problems=problems)
        self.assertFalse((self.folder / "run/checkpoint").exists())

    def refuse_weights(self, content, *texts):
        self.weights.write_bytes(content)
        self.refuse(str(self.weights), *texts)

    def change_config(self, **changes):
        path = self.model / "config.json"
        path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))

    def test_the_folder_is_good_before_it_is_damaged(self):
        self.weights.write_bytes(safetensors(self.tensors))
        done = self.run_with_model()
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_a_tokenizer_with_more_ids_than_the_model_has_rows(self):
        self.weights.unlink()
        self.change_config(vocab_size=10)
        done = run("run", PPO.parent / "sft.toml", "--run-dir", self.folder / "run", *sets(
            **{"models.policy.checkpoint": str(self.model), "models.policy.init": "random", "pipeline.iterations": 1}))
        self.assertEqual(done.returncode, FAILED, done.stderr)
        self.assertRegex(done.stderr, r"node 'train' failed on micro-batch 0 .*\n *= token id \d+ is outside the vocabulary of "
                         r"model policy, which is of 10")

    def test_a_tokenizer_that_ends_texts_with_a_token_that_the_model_does_not_have(self):
        tokenizer, config = self.model / "tokenizer.json", self.model / "tokenizer_config.json"
        whole = json.loads(tokenizer.read_text())
        whole["added_tokens"].append(whole["added_tokens"][1] | {"id": 98, "content": "<|end|>"})
        tokenizer.write_text(json.dumps(whole))
        config.write_text(json.dumps(json.loads(config.read_text()) | {"eos_token": "<|end|>"}))
        texts = (f"{config}: eos_token is token 98, but the model of this folder has 98 tokens (vocab_size)",
                 "resize_token_embeddings()")
        models = sets(**SMALL, **{f"models.{name}.checkpoint": str(self.model) for name in ("actor", "critic", "reference")})
        done = run("validate", PPO, *models)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn(f"warning: {texts[0]}", done.stderr)
        self.assert_refused(run("run", PPO, "--run-dir", self.folder / "run", *models), *texts)
        self.assert_refused(run("model", "sample", self.model, "--prompt", "1"), *texts)

    def test_missing_folder(self):
        shutil.rmtree(self.model)
        self.refuse(f"checkpoint: there is no folder {self.model}", "--set:1:25")

    def test_an_adapter_is_no_model(self):
        (self.model / "config.json").rename(self.model / "adapter_config.json")
        self.refuse(f"{self.model}: an adapter of PEFT, which is no model by itself",
                    "take its base model, and lora = { adapter = ", "merge_and_unload")
        self.assert_refused(run("model", "info", self.model), "an adapter of PEFT")

    def test_a_tokenizer_in_older_files_alone(self):
        (self.model / "tokenizer.json").unlink()
        (self.model / "vocab.json").write_text("{}")
        self.assert_refused(run("model", "tokenize", self.model, stdin='"1 + 2"'), "tokenizer.json: there is only vocab.json",
                            "save_pretrained")

    def test_an_index_of_no_tensors(self):
        self.weights.unlink()
        index = self.model / "model.safetensors.index.json"
        index.write_text('{"weight_map": {}}')
        self.refuse(f"{index}: weight_map names no tensor")
        self.assertIn("names no tensor", run("model", "verify", self.model).stdout)

    def test_a_clone_without_its_large_files(self):
        for name in ("model.safetensors", "tokenizer.json", "config.json"):
            with self.subTest(name):
                (self.model / name).write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0123\nsize 42\n")
                self.refuse(f"{self.model / name} is a pointer of Git LFS", "git lfs pull")
                shutil.copy(MODEL / name, self.model)

    def test_a_model_that_sees_what_follows(self):
        self.change_config(is_causal=False)
        self.refuse(f"{self.model / 'config.json'}: is_causal is false", "supported: true")

    def test_missing_weights(self):
        self.weights.unlink()
        self.refuse(str(self.model), "safetensors")

    def test_truncated_weights(self):
        self.refuse_weights(self.weights.read_bytes()[:-100])

    def test_truncated_header(self):
        self.refuse_weights(self.weights.read_bytes()[:40])

    def test_empty_weights(self):
        self.refuse_weights(b"")

    def test_header_length_beyond_any_file(self):
        self.refuse_weights(struct.pack("<Q", 1 << 60) + b"{}")

    def test_header_that_is_not_json(self):
        self.refuse_weights(struct.pack("<Q", 9) + b"not json!")

    def spoiled(self, **changes):
        return safetensors(self.tensors, lambda header: header[self.name].update(changes))

    def test_offsets_beyond_the_file(self):
        self.name = list(self.tensors)[-1]  # after all others in the file
        end = sum(len(content) for _, _, content in self.tensors.values())
        size = len(self.tensors[self.name][2])
        self.refuse_weights(self.spoiled(data_offsets=[end, end + size]), self.name)

    def test_offsets_backwards(self):
        self.refuse_weights(self.spoiled(data_offsets=[64, 0]), self.name)

    def test_offsets_that_do_not_fit_the_shape(self):
        self.refuse_weights(self.spoiled(shape=[3, 5]), self.name)

    def test_negative_shape(self):
        self.refuse_weights(self.spoiled(shape=[-1, 96]), self.name)

    def test_unknown_dtype(self):
        self.refuse_weights(self.spoiled(dtype="F12"), self.name, "F12")

    def test_dtype_of_another_size(self):
        self.refuse_weights(self.spoiled(dtype="F64"), self.name)

    def test_integers_in_place_of_weights(self):
        self.refuse_weights(self.spoiled(dtype="I32"), self.name, "I32")

    def test_missing_tensor(self):
        del self.tensors[self.name]
        self.refuse_weights(safetensors(self.tensors), self.name)

    def test_tensor_of_another_shape(self):
        dtype, shape, content = self.tensors[self.name]
        self.tensors[self.name] = (dtype, shape[::-1] if shape[0] != shape[-1] else (1,) + shape, content)
        self.refuse_weights(safetensors(self.tensors), self.name)

    def test_unknown_architecture(self):
        self.change_config(model_type="mamba", architectures=["MambaForCausalLM"])
        self.refuse(str(self.model / "config.json"), "model_type", '"mamba"', "supported: ", "llama")

    def test_config_that_is_not_json(self):
        (self.model / "config.json").write_text('{"model_type": "llama",\n "vocab_size": }\n')
        self.refuse("config.json:2:16")

    def test_config_without_a_size(self):
        self.change_config(hidden_size=None)
        self.refuse(str(self.model / "config.json"), "hidden_size")

    def test_config_of_an_absurd_size(self):
        self.change_config(vocab_size=1 << 62)
        self.refuse(str(self.model / "config.json"), "vocab_size", "too large")

    def test_config_of_another_size_than_the_weights(self):
        self.change_config(num_hidden_layers=4)
        self.refuse("layers.3")
        text = f"{self.weights}: 9 tensors are not those of a LlamaForCausalLM with 4 layers"
        self.assertRegex(run("model", "info", self.model).stdout, f"misfit +{re.escape(text)}; rlhf-run model verify names all")
        self.assertEqual(json.loads(run("model", "info", self.model, "--json").stdout)["stored"]["misfit"], text)

    def test_positions_that_do_not_hold_a_sample(self):
        self.change_config(max_position_embeddings=8)
        self.refuse("14 tokens", "8", "[nodes.generate]", "[nodes.held_out_answers]", problems=2)  # one a path

    def test_missing_tokenizer(self):
        (self.model / "tokenizer.json").unlink()
        self.refuse(str(self.model / "tokenizer.json"))

    def test_tokenizer_without_a_needed_part(self):
        path = self.model / "tokenizer.json"
        whole = json.loads(path.read_text())
        for part in ("model", "vocab"):
            with self.subTest(part=part):
                broken = json.loads(json.dumps(whole))
                del (broken if part == "model" else broken["model"])[part]
                path.write_text(json.dumps(broken))
                self.refuse(str(path), part)

    def test_tokenizer_of_an_unknown_kind(self):
        path = self.model / "tokenizer.json"
        broken = json.loads(path.read_text())
        broken["model"]["type"] = "Sorcery"
        path.write_text(json.dumps(broken))
        self.refuse(str(path), "Sorcery")

    def test_the_model_commands_refuse_the_same(self):
        self.weights.write_bytes(self.weights.read_bytes()[:-100])
        self.assert_refused(run("model", "logprobs", self.model, stdin="[3, 4]\n"), str(self.weights))
        (self.model / "tokenizer.json").write_text("{")
        self.assert_refused(run("model", "tokenize", self.model, stdin='"1"\n'), str(self.model / "tokenizer.json"))


class NotFinite(Case):
    def spoiled_model(self):
        model = self.folder / "model"
        shutil.copytree(MODEL, model)
        tensors = read_safetensors(model / "model.safetensors")
        name = next(name for name in sorted(tensors) if "mlp" in name)
        dtype, shape, content = tensors[name]
        value = struct.pack("<f", float("nan")) if dtype == "F32" else struct.pack("<H", 0x7FC0)
        tensors[name] = (dtype, shape, value + content[len(value):])
        (model / "model.safetensors").write_bytes(safetensors(tensors))
        return model

    def assert_stopped(self, finished, *texts):
        self.assertEqual(len(finished.stderr.split("error: ")), 2, finished.stderr)
        for text in texts:
            self.assertIn(text, finished.stderr)
        self.assertNotIn("internal error", finished.stderr)
        self.assertLessEqual(len(finished.stderr.splitlines()), 12, finished.stderr)

    def test_a_model_of_nan_weights_is_refused_as_it_is_loaded(self):
        model = self.spoiled_model()
        for name in ("actor", "critic", "reference"):
            with self.subTest(name):
                finished = self.run_ppo(expect=WRONG_PIPELINE, **{f"models.{name}.checkpoint": str(model)})
                self.assert_stopped(finished, f"error: model '{name}': {model}/model.safetensors: tensor ",
                                    "has values that are not finite", "rlhf-run model verify")
                self.assertFalse((finished.folder / "checkpoint").exists())

    def test_an_absurd_learning_rate_stops_the_run_and_keeps_the_last_checkpoint(self):
        finished = self.run_ppo(expect=FAILED, **{
            "models.actor.optimizer.learning_rate": 1e30, "checkpoint.every_iterations": 1, "pipeline.iterations": 20,
            "nodes.train.mini_batches": 1, "nodes.advantages.whiten": "none"})
        self.assert_stopped(finished, "in iteration 1", "not finite", "last checkpoint: " + str(finished.folder / "checkpoint"))
        self.assertEqual(len(finished.metrics), 1)
        self.assertEqual(set(finished.weights("actor")), set(read_safetensors(MODEL / "model.safetensors")))
        self.assertEqual({path.name for path in finished.folder.glob("*checkpoint*")}, {"checkpoint", "checkpoints"})
        self.assertEqual([path.name for path in (finished.folder / "checkpoints").iterdir()], ["1"])


if __name__ == "__main__":
    unittest.main()
