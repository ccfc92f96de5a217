"""A pipeline trains a Qwen2 model that transformers wrote, and transformers continues what it wrote.

    python pipeline_round_trip.py PROGRAM DATA      needs torch and transformers; DATA holds tokenizers/qwen2 and gsm8k

Makes a random Qwen2 model of 5 million parameters with Qwen2's own tokenizer, runs pipelines/ppo_gsm8k.toml on GSM8K with it, and
compares the greedy text of the written checkpoint: `rlhf-run model sample` against `generate` of transformers.
"""

import pathlib
import shutil
import sys
import tempfile
import unittest

import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification, AutoTokenizer, Qwen2Config, Qwen2ForCausalLM

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/quick_start"))
from quick_start import run_program  # noqa: E402

PROGRAM, DATA = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
NEW_TOKENS = 24
PROMPTS = ["Natalia sold clips to 48 of her friends. How many?\nAnswer:", "12 + 30 =", "Ünïcödé, 数学 and 🙂:", "The end"]


def run(*arguments, text=""):
    result = run_program([PROGRAM, *arguments], cwd=ROOT, stdin=text, timeout=600)
    if result.returncode != 0:
        raise AssertionError(f"{arguments} ended with {result.returncode}:\n{result.stderr}")
    return result.stdout


def make_model(folder, seed):
    torch.manual_seed(seed)
    config = Qwen2Config(vocab_size=151936, hidden_size=32, intermediate_size=96, num_hidden_layers=3, num_attention_heads=4,
                         num_key_value_heads=2, max_position_embeddings=2048, tie_word_embeddings=True, initializer_range=0.3,
                         bos_token_id=151643, eos_token_id=151643)
    model = Qwen2ForCausalLM(config)
    model.save_pretrained(folder)
    for file in ("tokenizer.json", "tokenizer_config.json"):
        shutil.copyfile(DATA / "tokenizers/qwen2" / file, folder / file)
    return sum(parameter.numel() for parameter in model.parameters())


class PipelineRoundTrip(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory(prefix="sluice-")
        folder = pathlib.Path(cls.temporary.name)
        cls.parameters = make_model(folder / "model", seed=3)
        # Nothing scores, so what is learned is to be like the reference. Were that the actor itself, the divergence would be 0 to
        # the bit.
        make_model(folder / "reference", seed=4)
        settings = {f"models.{name}.checkpoint": folder / "model" for name in ("actor", "critic")}
        settings["models.reference.checkpoint"] = folder / "reference"
        settings |= {"nodes.prompts.path": DATA / "gsm8k/train.jsonl", "pipeline.iterations": 3,
                     "models.actor.optimizer.learning_rate": 1e-3}
        run(ROOT / "pipelines/ppo_gsm8k.toml", "--run-dir", folder / "run",
            *[word for key, value in settings.items() for word in ("--set", f"{key}={value}")])
        cls.start, cls.checkpoint = folder / "model", folder / "run/checkpoint"

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def test_the_model_is_of_the_size_that_was_meant(self):
        self.assertAlmostEqual(self.parameters / 5e6, 1, delta=0.05)

    def test_greedy_text_is_that_of_transformers(self):
        folder = self.checkpoint / "actor"
        model, tokenizer = (AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32),
                            AutoTokenizer.from_pretrained(folder))
        for prompt in PROMPTS:
            with self.subTest(prompt=prompt):
                ids = tokenizer(prompt, return_tensors="pt")
                output = model.generate(**ids, max_new_tokens=NEW_TOKENS, do_sample=False, pad_token_id=151643)[0]
                expected = tokenizer.decode(output[ids["input_ids"].shape[1]:], skip_special_tokens=True)
                text = run("model", "sample", folder, "--prompt", prompt, "--temperature", 0, "--max-new-tokens", NEW_TOKENS)
                self.assertEqual(text, expected + "\n")

    def test_training_changed_the_weights(self):
        before, after = (AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32)
                         for folder in (self.start, self.checkpoint / "actor"))
        self.assertFalse(torch.equal(before.model.norm.weight, after.model.norm.weight))

    def test_the_critic_loads_as_a_sequence_classifier(self):
        model, loading = AutoModelForSequenceClassification.from_pretrained(self.checkpoint / "critic", output_loading_info=True)
        self.assertEqual([list(loading["missing_keys"]), list(loading["unexpected_keys"])], [[], []])
        self.assertGreater(model.score.weight.abs().max().item(), 0, "the critic learned nothing")


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)
