"""`rlhf-run init`: what it writes for a model and a data file is valid, runs, and fits."""

import json
import math
import os
import shutil
import subprocess
import tomllib
import unittest

from schema_test import SCHEMA, accepted
from support import DATA, DONE, MODEL, ROOT, Case, run, safetensors, skip_or_fail, start

TEXT_MODEL = ROOT / "pipelines/models/tiny-text"  # with a chat template
PAIRS = ROOT / "pipelines/data/arithmetic_preferences.jsonl"
SUMS = ROOT / "pipelines/data/arithmetic_train.jsonl"
DEMONSTRATIONS = ROOT / "pipelines/data/arithmetic_demonstrations.jsonl"
CONVERSATIONS = ROOT / "pipelines/data/conversations.jsonl"


def gsm8k():
    path = DATA / "gsm8k/train.jsonl"
    if not path.exists():
        skip_or_fail(f"{path} is missing: init is not tried on it")
    return path


class Init(Case):
    def init(self, kind, model, data, *words):
        """What `init` writes and says; the file is valid by itself and by the schema."""
        file = self.folder / "p.toml"
        done = run("init", kind, "--model", model, "--data", data, "-o", file, "--force", *words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        validated = run("validate", file)
        self.assertEqual(validated.returncode, DONE, validated.stderr)
        self.assertIn("no problems", validated.stdout)
        self.assertNotIn("warning", done.stderr)
        self.assertEqual(accepted(SCHEMA, [file.read_text()]), [True])
        return tomllib.loads(file.read_text()), done.stderr

    def rows(self, *rows):
        return self.write("data.jsonl", "".join(json.dumps(row) + "\n" for row in rows))

    def refused(self, kind, data, *words, says):
        done = run("init", kind, "--model", TEXT_MODEL, "--data", data, *words)
        self.assert_refused(done, *says)
        self.assertEqual(done.stdout, "")


class EachKind(Init):
    def test_grpo_on_gsm8k_has_15_lines(self):
        pipeline, said = self.init("grpo", TEXT_MODEL, gsm8k())
        lines = [line for line in (self.folder / "p.toml").read_text().splitlines() if line and not line.startswith("#")]
        self.assertLessEqual(len(lines), 15)
        self.assertEqual(pipeline["nodes"]["score"]["type"], "numeric_match")
        prompts = pipeline["nodes"]["prompts"]
        self.assertEqual((prompts["prompt_field"], prompts["label_field"], prompts["chat"]), ("question", "answer", True))
        for word in ("115k parameters", "chat template", "7473 rows", "prompt from question", "after ####",
                     f"rlhf-run {self.folder}/p.toml"):
            self.assertIn(word, said)

    def test_ppo_on_gsm8k(self):
        pipeline, _ = self.init("ppo", TEXT_MODEL, gsm8k())
        self.assertEqual(pipeline["models"]["critic"]["head"], "value")

    def test_sft_on_gsm8k_learns_the_answers(self):
        pipeline, _ = self.init("sft", TEXT_MODEL, gsm8k())
        self.assertEqual(pipeline["nodes"]["examples"]["completion_field"], "answer")

    def test_sft_on_conversations(self):
        pipeline, _ = self.init("sft", TEXT_MODEL, CONVERSATIONS)
        self.assertEqual(pipeline["nodes"]["examples"]["messages_field"], "messages")

    def test_pairs_of_whole_texts_are_learned_as_they_are(self):
        pairs = self.rows(*({"chosen": f"Human: {n}? Assistant: yes.", "rejected": f"Human: {n}? Assistant: no."}
                            for n in range(4)))
        pipeline, said = self.init("dpo", TEXT_MODEL, pairs)
        self.assertEqual(pipeline["nodes"]["pairs"]["prompt_field"], "")
        self.assertIs(pipeline["nodes"]["pairs"]["chat"], False)
        self.assertIn("texts without a prompt are learned as they are", said)
        done = run("validate", "--data", self.folder / "p.toml")
        self.assertEqual(done.returncode, DONE, done.stderr)

    def test_dpo_and_reward_on_pairs(self):
        for model in (MODEL, TEXT_MODEL):
            for kind in ("dpo", "reward"):
                with self.subTest(kind=kind, model=model.name):
                    pipeline, _ = self.init(kind, model, PAIRS)
                    self.assertEqual(pipeline["nodes"]["pairs"]["rejected_field"], "rejected")

    def test_each_runs(self):
        for kind, data in (("grpo", SUMS), ("ppo", SUMS), ("sft", DEMONSTRATIONS), ("dpo", PAIRS), ("reward", PAIRS)):
            with self.subTest(kind):
                self.init(kind, MODEL, data)
                done = run(self.folder / "p.toml", "--run-dir", self.folder / kind, "--set", "pipeline.iterations=1")
                self.assertEqual(done.returncode, DONE, done.stderr)
                metrics = json.loads((self.folder / kind / "metrics.jsonl").read_text())
                self.assertTrue(any(name.endswith("gradient_norm") or name.endswith("loss") for name in metrics), metrics)

    def test_grpo_on_gsm8k_runs(self):
        rows = [json.loads(line) for line in gsm8k().read_text().splitlines()[:4]]
        self.init("grpo", TEXT_MODEL, self.rows(*rows))
        done = run(self.folder / "p.toml", "--run-dir", self.folder / "run", "--set", "pipeline.iterations=1",
                   "--set", "nodes.generate.max_new_tokens=16")
        self.assertEqual(done.returncode, DONE, done.stderr)


class Fields(Init):
    def test_there_is_room_for_what_is_put_around_and_behind_a_prompt(self):
        pipeline, _ = self.init("grpo", TEXT_MODEL, SUMS)
        self.assertIn("suffix", pipeline["nodes"]["prompts"])
        done = run(self.folder / "p.toml", "--run-dir", self.folder / "run", "--set", "pipeline.iterations=1", "--set",
                   "nodes.prompts.groups_per_iteration=2", "--set", "nodes.generate.max_new_tokens=4", timeout=120)
        self.assertEqual(done.returncode, DONE, done.stderr)
        row = json.loads((self.folder / "run/metrics.jsonl").read_text())
        self.assertEqual(row["data/groups"], 2)

    def test_rows_of_verl(self):
        row = {"data_source": "x", "prompt": [{"role": "user", "content": "1+1?"}], "reward_model": {"ground_truth": "2"}}
        pipeline, _ = self.init("grpo", TEXT_MODEL, self.rows(row))
        self.assertEqual(pipeline["nodes"]["prompts"]["messages_field"], "prompt")
        self.assertEqual(pipeline["nodes"]["prompts"]["label_field"], "reward_model.ground_truth")

    def test_rows_of_alpaca(self):
        rows = [{"instruction": "add", "input": "1 and 1", "output": "2"}, {"instruction": "say a", "input": "", "output": "a"}]
        pipeline, _ = self.init("sft", TEXT_MODEL, self.rows(*rows))
        self.assertEqual(pipeline["nodes"]["examples"]["prompt_fields"], ["instruction", "input"])
        self.assertEqual(pipeline["nodes"]["examples"]["completion_field"], "output")

    def test_conversations_of_sharegpt(self):
        row = {"conversations": [{"from": "human", "value": "after 3?"}, {"from": "gpt", "value": "4"}]}
        pipeline, _ = self.init("sft", TEXT_MODEL, self.rows(row))
        self.assertEqual(pipeline["nodes"]["examples"]["messages_field"], "conversations")

    def test_pairs_of_conversations(self):
        turns = lambda answer: [{"role": "user", "content": "after 3?"}, {"role": "assistant", "content": answer}]
        pipeline, _ = self.init("dpo", TEXT_MODEL, self.rows({"chosen": turns("4"), "rejected": turns("5")}))
        self.assertEqual(pipeline["nodes"]["pairs"]["prompt_field"], "")

    def test_fields_that_are_named(self):
        pipeline, _ = self.init("grpo", TEXT_MODEL, self.rows({"prompt": "no", "q": "1+1", "m": {"a": 2}}),
                                "--prompt-field", "q", "--answer-field", "m.a")
        self.assertEqual(pipeline["nodes"]["prompts"]["prompt_field"], "q")
        self.assertEqual(pipeline["nodes"]["prompts"]["label_field"], "m.a")

    def test_a_field_that_some_row_lacks_is_not_taken(self):
        self.refused("grpo", self.rows({"prompt": "1+1", "answer": "2"}, {"prompt": "1+2"}), says=[
            "the answer", "looked for, in every row: answer, label", "the first row has: prompt (a text), answer (a text)",
            "--answer-field", '"answer" is in 1 of 2 rows, and not in row 2, which has: prompt (a text)'])

    def test_rows_that_are_all_too_long_for_the_model(self):
        self.refused("sft", self.rows({"prompt": "1+1=" * 4000, "completion": "2"}),
                     says=["the shortest of the first rows has", "shorter rows"])

    def test_no_prompt(self):
        self.refused("sft", self.rows({"words": "a", "n": 3, "flag": True, "list": [1]}),
                     says=["the prompt", "words (a text), n (a number), flag (true or false), list (a list)", "--prompt-field"])

    def test_a_field_of_another_kind_is_told(self):
        self.refused("grpo", self.rows({"prompt": "1 < 2?", "answer": True}), says=[
            "the answer is not found in", '"answer" is true or false in row 1, which is not taken for it', "--answer-field"])

    def test_no_pairs(self):
        self.refused("dpo", self.rows({"prompt": "a", "chosen": "b"}),
                     says=["the worse completion", "rejected", "chosen (a text)"])

    def test_a_row_that_is_no_object(self):
        self.refused("sft", self.write("data.jsonl", '{"prompt": "a", "completion": "b"}\n3\n'), says=["data.jsonl:2", "object"])

    def test_no_data_and_no_model(self):
        self.refused("sft", self.folder / "none.jsonl", says=["none.jsonl"])
        self.assert_refused(run("init", "sft", "--model", self.folder / "none", "--data", SUMS), "none")


class Scorers(Init):
    def scorer(self, *answers):
        pipeline, said = self.init("grpo", TEXT_MODEL, self.rows(*({"prompt": "x", "answer": answer} for answer in answers)))
        return pipeline["nodes"]["score"], said

    def test_numbers(self):
        self.assertEqual(self.scorer("3", "-1,000.5", 7, "3/4")[0]["type"], "numeric_match")

    def test_marked_numbers(self):
        self.assertEqual(self.scorer("so 2+1=3\n#### 3", "it is \\boxed{4}")[0]["type"], "numeric_match")

    def test_letters(self):
        score, _ = self.scorer("A", "(C)", "b")
        self.assertEqual((score["type"], score["choices"]), ("multiple_choice", 3))

    def test_texts(self):
        score, said = self.scorer("Paris", "the 3 of us")
        self.assertEqual((score["type"], score["normalize"]), ("exact_match", "text"))
        self.assertNotIn("python_scorer", said)

    def test_long_texts_are_hardly_said_word_for_word(self):
        self.assertIn("python_scorer", self.scorer("word " * 40)[1])


class Sizes(Init):
    def larger_model(self, layers=6, hidden=512):
        """25 million parameters in bfloat16, all of them zeros."""
        folder = self.folder / "model"
        shutil.copytree(TEXT_MODEL, folder)
        config = json.loads((folder / "config.json").read_text())
        config |= {"hidden_size": hidden, "intermediate_size": 4 * hidden, "num_hidden_layers": layers, "num_attention_heads": 8,
                   "num_key_value_heads": 8, "head_dim": hidden // 8, "torch_dtype": "bfloat16"}
        (folder / "config.json").write_text(json.dumps(config))
        shapes = {"model.embed_tokens.weight": (config["vocab_size"], hidden), "model.norm.weight": (hidden,)}
        for layer in range(layers):
            shapes |= {f"model.layers.{layer}.{name}.weight": shape for name, shape in
                       {"input_layernorm": (hidden,), "post_attention_layernorm": (hidden,), "self_attn.q_proj": (hidden, hidden),
                        "self_attn.k_proj": (hidden, hidden), "self_attn.v_proj": (hidden, hidden),
                        "self_attn.o_proj": (hidden, hidden), "mlp.gate_proj": (4 * hidden, hidden),
                        "mlp.up_proj": (4 * hidden, hidden), "mlp.down_proj": (hidden, 4 * hidden)}.items()}
        tensors = {name: ("BF16", shape, bytes(2 * math.prod(shape))) for name, shape in shapes.items()}
        (folder / "model.safetensors").write_bytes(safetensors(tensors))
        return folder

    def test_adapters_where_memory_has_no_room_to_train_all_weights(self):
        model = self.larger_model()
        whole, said = self.init("grpo", model, SUMS, "--memory-gib", "8")
        self.assertEqual(whole["models"]["actor"]["dtype"], "bfloat16")
        self.assertNotIn("lora", whole["models"]["actor"])
        self.assertIn("stored as BF16, computed in bfloat16", said)
        adapters, said = self.init("grpo", model, SUMS, "--memory-gib", "0.4")
        self.assertEqual(adapters["models"]["actor"]["lora"], {"rank": 16})
        self.assertEqual(adapters["models"]["reference"], {"base_of": "actor"})
        self.assertAlmostEqual(adapters["models"]["actor"]["optimizer"]["learning_rate"],
                               10 * whole["models"]["actor"]["optimizer"]["learning_rate"])
        self.assertRegex(said, r"memory +to train all weights with all tokens takes .* of 429 MB; adapters \(lora\)")

    def test_fewer_tokens_where_memory_is_small(self):
        wide, _ = self.init("grpo", TEXT_MODEL, gsm8k(), "--memory-gib", "8")
        small, said = self.init("grpo", TEXT_MODEL, gsm8k(), "--memory-gib", "0.04")
        self.assertEqual(small["runtime"]["memory_gib"], 0.04)
        self.assertLess(small["budget"]["tokens_in_flight"], wide["budget"]["tokens_in_flight"])
        self.assertNotIn("lora", small["models"]["actor"])
        self.assertRegex(said, r"memory +to train all weights with all tokens takes .* of 42.9 MB; all weights")

    def test_nothing_fits(self):
        self.refused("sft", CONVERSATIONS, "--memory-gib", "0.001", says=["the smallest pipeline", "of 1.1 MB", "--memory-gib"])

    def test_a_prompt_that_the_model_has_no_room_for(self):
        self.refused("grpo", self.rows({"prompt": "word " * 20000, "answer": "3"}),
                     says=["the model takes", "a prompt of the data has"])


class Files(Init):
    def test_it_goes_to_standard_output(self):
        done = run("init", "sft", "--model", MODEL, "--data", DEMONSTRATIONS)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(tomllib.loads(done.stdout)["nodes"]["train"]["type"], "train_sft")
        self.assertIn("-o sft.toml", done.stderr)

    def test_a_file_that_is_there_stays(self):
        file = self.write("p.toml", "mine")
        words = ("init", "sft", "--model", MODEL, "--data", DEMONSTRATIONS, "-o", file)
        self.assert_refused(run(*words), "p.toml is there already", "--force")
        self.assertEqual(file.read_text(), "mine")
        self.assertEqual(run(*words, "--force").returncode, DONE)
        self.assertNotEqual(file.read_text(), "mine")

    def test_the_data_is_never_overwritten(self):
        data = self.folder / "d.jsonl"
        shutil.copy(DEMONSTRATIONS, data)
        for named in (data, self.folder, self.folder / "*.jsonl"):
            with self.subTest(named):
                done = run("init", "sft", "--model", MODEL, "--data", named, "--force", "-o", data)
                self.assert_refused(done, "d.jsonl is a file of the data", "-o names another file")
                self.assertEqual(data.read_text(), DEMONSTRATIONS.read_text())

    def test_the_command_that_it_names_runs_the_file(self):
        words = ("init", "sft", "--model", MODEL, "--data", DEMONSTRATIONS, "-o", self.folder / "plain")
        self.assertIn(f", then rlhf-run run {self.folder}/plain\n", run(*words).stderr)
        self.assertIn(f"#   rlhf-run run {self.folder}/plain\n", (self.folder / "plain").read_text())

    def test_a_file_whose_name_no_run_folder_can_have_names_its_pipeline(self):
        for file, name in (("in 2.toml", "in-2"), ("größe.toml", "gr--e"), (".hidden.toml", "pipeline"), ("plain.toml", None)):
            done = run("init", "sft", "--model", MODEL, "--data", DEMONSTRATIONS, "-o", self.folder / file)
            self.assertEqual(done.returncode, DONE, done.stderr)
            self.assertEqual(tomllib.loads((self.folder / file).read_text())["pipeline"].get("name"), name)
            self.assertEqual(run("validate", self.folder / file).returncode, DONE)

    def test_it_is_written_into_what_is_no_ordinary_file(self):
        pipe = self.folder / "pipe"
        os.mkfifo(pipe)
        with start("init", "sft", "--model", MODEL, "--data", DEMONSTRATIONS, "--force", "-o", pipe,
                   stderr=subprocess.DEVNULL) as writer:
            self.assertEqual(tomllib.loads(pipe.read_text())["nodes"]["train"]["type"], "train_sft")
        self.assertEqual(writer.returncode, DONE)
        self.assertTrue(pipe.is_fifo())

    def test_a_link_stays_and_what_it_leads_to_is_written(self):
        file, link = self.write("p.toml", "mine"), self.folder / "link.toml"
        link.symlink_to(file)
        self.assertEqual(run("init", "sft", "--model", MODEL, "--data", DEMONSTRATIONS, "--force", "-o", link).returncode, DONE)
        self.assertTrue(link.is_symlink())
        self.assertIn("train_sft", file.read_text())

    def test_relative_paths_start_at_the_file(self):
        shutil.copytree(MODEL, self.folder / "models/m")
        shutil.copy(DEMONSTRATIONS, self.folder / "d.jsonl")
        (self.folder / "sub").mkdir()
        done = self.run_in_folder("init", "sft", "--model", "models/m", "--data", "d.jsonl", "-o", "sub/p.toml")
        self.assertEqual(done.returncode, DONE, done.stderr)
        pipeline = tomllib.loads((self.folder / "sub/p.toml").read_text())
        self.assertEqual(pipeline["models"]["policy"]["checkpoint"], "../models/m")
        self.assertEqual(pipeline["nodes"]["examples"]["path"], "../d.jsonl")
        self.assertEqual(run("validate", self.folder / "sub/p.toml").returncode, DONE)

    def test_a_folder_whose_name_is_a_tilde_is_not_the_home_folder(self):
        (self.folder / "~").mkdir()
        shutil.copy(DEMONSTRATIONS, self.folder / "~/d.jsonl")
        done = self.run_in_folder("init", "sft", "--model", MODEL, "--data", "./~/d.jsonl", "-o", "p.toml")
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(run("validate", self.folder / "p.toml").returncode, DONE)


if __name__ == "__main__":
    unittest.main()
