"""What leaves the program, in the hands of those who take it: transformers, PEFT, the Hub's reader of model cards, gguf.

    python model_out_reference.py PROGRAM DATA      needs torch, transformers, peft and gguf; DATA holds tokenizers/qwen2 and
                                                    chat_templates

Exported folders load without a missing or an unexpected key, and `model chat` and `model sample` say greedily what `generate`
says.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import tomllib
import unittest

import gguf
import torch
from huggingface_hub import ModelCard
from peft import AutoPeftModelForCausalLM
from transformers import (AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, GenerationConfig, Qwen2Config,
                          Qwen2ForCausalLM)

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/quick_start"))
from quick_start import run_program  # noqa: E402

PROGRAM, DATA = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
PPO, SMALL = ROOT / "pipelines/ppo.toml", {"pipeline.iterations": 1, "nodes.prompts.groups_per_iteration": 16,
                                           "nodes.held_out.groups_per_iteration": 8}
IDS = torch.tensor([[5, 13, 5, 14, 7]])
TURNS = ("What is 12 + 30?", "Ünïcödé, 数学 and 🙂", "and now?")
MOST = 10  # tokens of an answer


def run(*arguments, text=""):
    result = run_program([PROGRAM, *arguments], cwd=ROOT, stdin=text, timeout=600)
    if result.returncode != 0:
        raise AssertionError(f"{arguments} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def load(folder, kind=AutoModelForCausalLM):
    model, info = kind.from_pretrained(folder, dtype=torch.float32, output_loading_info=True)
    for what in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        assert not info[what], f"{folder}: {what}: {info[what]}"
    return model.eval()


class Exported(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sluice-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name)
        base = cls.folder / "base"
        shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", base)
        (base / "README.md").write_text("---\nlicense: apache-2.0  # of the base\nlanguage: en\n---\n# A model\n")
        (base / "generation_config.json").write_text('{"max_new_tokens": 7, "top_k": 40, "repetition_penalty": 1.3}')
        settings = SMALL | {"models.actor.checkpoint": base, "models.actor.lora": "{ rank = 4 }",
                            "nodes.generate.temperature": 0.8, "nodes.reference.temperature": 0.8, "nodes.train.temperature": 0.8,
                            "models.actor.optimizer.learning_rate": 1e-3, "pipeline.iterations": 2}
        run("run", PPO, "--run-dir", cls.folder / "run",
            *[word for key, value in settings.items() for word in ("--set", f"{key}={value}")])

    def export(self, name, *words, model="actor", run_folder="run"):
        target = self.folder / name
        if not target.exists():
            run("checkpoints", "export", self.folder / run_folder, "--model", model, "--to", target, *words)
        return target

    def test_the_merged_model_loads_and_so_do_its_adapters_with_the_same_logits(self):
        merged = load(self.export("merged", "--save", "merged"))
        adapters = self.export("adapter", "--save", "adapter")
        self.assertEqual(sorted(path.name for path in adapters.iterdir()),
                         ["README.md", "adapter_config.json", "adapter_model.safetensors", "tokenizer.json",
                          "tokenizer_config.json"])
        changed = AutoPeftModelForCausalLM.from_pretrained(adapters).eval()
        untrained = load(self.folder / "base")
        with torch.no_grad():
            ours, theirs, before = (model(IDS).logits for model in (merged, changed, untrained))
        self.assertTrue(torch.allclose(ours, theirs, atol=1e-4))
        self.assertFalse(torch.allclose(ours, before, atol=1e-4))
        self.assertEqual(ModelCard.load(adapters / "README.md").data.library_name, "peft")

    def test_narrow_tensors_and_a_critic_load(self):
        load(self.export("narrow", "--save", "merged", "--dtype", "bfloat16"))
        load(self.export("critic", model="critic"), AutoModelForSequenceClassification)

    def test_a_policy_on_one_trunk_with_its_critic_loads_as_a_policy(self):
        settings = (SMALL | {"models.actor.head": '"policy+value"', "nodes.values.model": '"actor"',
                             "nodes.train.critic": '"actor"', "models.critic": ""})
        run("run", PPO, "--run-dir", self.folder / "trunk",
            *[word for key, value in settings.items() for word in ("--set", f"{key}={value}")])
        load(self.export("policy", run_folder="trunk"))

    def test_the_hub_reads_the_card(self):
        card = ModelCard.load(self.export("carded", "--base-model", "org/tiny") / "README.md")
        self.assertEqual(card.data.license, "apache-2.0")
        self.assertEqual(card.data.base_model, "org/tiny")
        self.assertEqual((card.data.library_name, card.data.pipeline_tag), ("transformers", "text-generation"))
        self.assertEqual(card.data.tags, ["rlhf", "sluice", "ppo", "lora"])
        pipeline = tomllib.loads(card.text.partition("```toml\n")[2].partition("\n```\n")[0])
        self.assertEqual(pipeline["models"]["actor"]["optimizer"]["learning_rate"], 1e-3)
        self.assertEqual(pipeline["nodes"]["generate"]["temperature"], 0.8)

    def test_generation_config_samples_as_the_rollout_did(self):
        config = GenerationConfig.from_pretrained(self.export("merged", "--save", "merged"))
        self.assertEqual((config.do_sample, config.temperature, config.top_p, config.top_k), (True, 0.8, 1.0, 0))
        self.assertEqual((config.eos_token_id, config.pad_token_id, config.max_new_tokens), (1, 0, 7))
        self.assertEqual(config.repetition_penalty or 1.0, 1.0)
        config.validate(strict=True)

    def test_what_a_converter_to_gguf_reads_is_there(self):
        folder = self.export("merged", "--save", "merged")
        vocabulary = gguf.SpecialVocab(folder, load_merges=True)
        self.assertEqual((vocabulary.special_token_ids["eos"], vocabulary.special_token_ids["pad"]), (1, 0))
        self.assertIn("architectures", json.loads((folder / "config.json").read_text()))


def make_model(folder):
    torch.manual_seed(3)
    config = Qwen2Config(vocab_size=151936, hidden_size=32, intermediate_size=96, num_hidden_layers=2, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=True, initializer_range=0.3,
                         bos_token_id=151643, eos_token_id=151643)
    Qwen2ForCausalLM(config).save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(DATA / "tokenizers/qwen2" / file, folder / file)


class Said(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sluice-")
        cls.addClassCleanup(cls.temporary.cleanup)
        cls.folder = pathlib.Path(cls.temporary.name) / "model"
        make_model(cls.folder)
        cls.model = load(cls.folder)

    def ends_at(self, ids):
        (self.folder / "generation_config.json").write_text(json.dumps({"eos_token_id": ids}))

    def generate(self, ids, ends, most=MOST):
        output = self.model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long),
                                     max_new_tokens=most, do_sample=False, eos_token_id=ends, pad_token_id=151643)[0]
        return output[len(ids):].tolist()

    def conversation(self, tokenizer, ends, system=None):
        """Each answer's tokens, and the length of the context it was given in. What was said before stays its tokens."""
        messages, said, answers = ([{"role": "system", "content": system}] if system else []), [], []
        for turn in TURNS:
            messages.append({"role": "user", "content": turn})
            text = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
            ids = []
            for number, tokens in enumerate(said):
                before, _, text = text.partition(f"@answer {number}@")
                ids += tokenizer.encode(before, add_special_tokens=False) + tokens
            ids += tokenizer.encode(text, add_special_tokens=False)
            tokens = self.generate(ids, ends)
            answers.append((tokens, len(ids)))
            messages.append({"role": "assistant", "content": f"@answer {len(said)}@"})
            said.append(tokens[:-1] if tokens[-1] in ends else tokens)
        return answers

    def compare(self, template, ends, *words, system=None):
        shutil.copyfile(DATA / "chat_templates" / template, self.folder / "chat_template.jinja")
        self.ends_at(ends)
        expected = self.conversation(AutoTokenizer.from_pretrained(self.folder), ends, system)
        lines = run("model", "chat", self.folder, "--json", "--temperature", 0, "--max-new-tokens", MOST, *words,
                    text="".join(turn + "\n" for turn in TURNS)).splitlines()
        answers = [json.loads(line) for line in lines]
        self.assertEqual([(answer["tokens"], answer["context_tokens"]) for answer in answers], expected)
        self.assertEqual([answer["finish"] for answer in answers],
                         ["end_of_sequence" if tokens[-1] in ends else "length" for tokens, _ in expected])
        return answers

    def test_a_conversation_is_that_of_transformers(self):
        for template in ("Qwen-Qwen2.5-7B-Instruct.jinja", "Qwen-Qwen3-0.6B.jinja", "microsoft-Phi-3.5-mini-instruct.jinja",
                         "deepseek-ai-DeepSeek-R1-Distill-Qwen-32B.jinja"):
            with self.subTest(template):
                answers = self.compare(template, [151643])
                self.assertGreater(answers[2]["reused_tokens"], 0)

    def test_a_system_message_and_answers_that_end(self):
        template, system = "Qwen-Qwen2.5-7B-Instruct.jinja", "Be brief."
        tokens = self.compare(template, [151643], "--system", system, system=system)[0]["tokens"]
        answers = self.compare(template, [151643, tokens[4]], "--system", system, system=system)
        self.assertEqual(answers[0]["finish"], "end_of_sequence")

    def test_samples_of_a_file_of_prompts_are_those_of_generate(self):
        self.ends_at([151643])
        tokenizer = AutoTokenizer.from_pretrained(self.folder)
        prompts = [f"{text} {number} =" for number in range(5) for text in ("12 + 30", "数学", "The end of a story")]
        file = self.folder.parent / "prompts.jsonl"
        file.write_text("".join(json.dumps({"question": prompt}) + "\n" for prompt in prompts))
        out = self.folder.parent / "samples.jsonl"
        run("model", "sample", self.folder, "--prompts", file, "--prompt-field", "question", "-n", 2, "-o", out, "--temperature",
            0, "--max-new-tokens", MOST, "--tokens")
        lines = [json.loads(line) for line in out.read_text().splitlines()]
        self.assertEqual([(line["row"], line["index"]) for line in lines],
                         [(row, index) for row in range(15) for index in range(2)])
        for line in lines:
            ids = tokenizer.encode(prompts[line["row"]])
            expected = self.generate(ids, [151643])
            self.assertEqual((line["prompt"], line["tokens"]), (prompts[line["row"]], expected))
            with torch.no_grad():
                logprobs = self.model(torch.tensor([ids + expected])).logits[0, len(ids) - 1:-1].log_softmax(-1)
            total = logprobs.gather(1, torch.tensor(expected)[:, None]).sum().item()
            self.assertAlmostEqual(line["logprob_sum"], total, delta=1e-3)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
