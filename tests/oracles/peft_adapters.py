"""Adapters that PEFT has made, as a run begins with them: what it exports computes what PEFT does with them, or they are refused.

    python peft_adapters.py PROGRAM      needs torch, transformers and peft

The learning rate is 0, so that a run gives back what it read.
"""

import json
import pathlib
import shutil
import sys
import tempfile
import unittest

import torch
from peft import LoraConfig, PeftModel, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM
from transformers.utils import logging

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/quick_start"))
from quick_start import run_program  # noqa: E402

PROGRAM = pathlib.Path(sys.argv[1]).resolve()
IDS = torch.tensor([[5, 13, 5, 14, 7]])
WRONG_PIPELINE = 78


def program(*arguments):
    return run_program([PROGRAM, *arguments], cwd=ROOT, timeout=600)


def load(folder):
    return AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()


def logits(model):
    with torch.no_grad():
        return model.eval()(IDS).logits.float()


class Adapters(unittest.TestCase):
    BASE = ROOT / "pipelines/models/tiny-arithmetic"

    def setUp(self):
        temporary = tempfile.TemporaryDirectory(prefix="sluice-")
        self.addCleanup(temporary.cleanup)
        self.folder = pathlib.Path(temporary.name)

    def make(self, dtype=torch.float32, **options):
        """An adapter as PEFT saves it, which has learned something; the logits with it, as PEFT loads it."""
        torch.manual_seed(7)
        given = {"r": 4, "lora_alpha": 8, "target_modules": ["q_proj", "v_proj"]} | options
        model = get_peft_model(load(self.BASE), LoraConfig(task_type="CAUSAL_LM", **given))
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.requires_grad:
                    parameter.add_(0.1 * torch.randn_like(parameter))
        model.to(dtype).save_pretrained(self.folder / "adapter")

    def settings(self, rank, alpha, targets):
        lora = f'{{ rank = {rank}, alpha = {alpha}, targets = {json.dumps(targets)}, adapter = "{self.folder / "adapter"}" }}'
        settings = {"models.policy.checkpoint": self.BASE, "models.policy.init": "checkpoint", "models.policy.lora": lora,
                    "models.policy.optimizer": "{ learning_rate = 0.0 }", "pipeline.iterations": 1}
        return [word for key, value in settings.items() for word in ("--set", f"{key}={value}")]

    def check(self, rank=4, alpha=8, targets=("q_proj", "v_proj"), **options):
        self.make(**options)
        done = program("run", ROOT / "pipelines/sft.toml", "--run-dir", self.folder / "run", *self.settings(rank, alpha, targets))
        self.assertEqual(done.returncode, 0, done.stderr)
        expected = logits(PeftModel.from_pretrained(load(self.BASE), self.folder / "adapter"))
        self.assertGreater((expected - logits(load(self.BASE))).abs().max().item(), 0.05, "the adapter changes nothing")
        trained = self.folder / "run/checkpoint/policy"
        for model in (load(trained), PeftModel.from_pretrained(load(self.BASE), trained / "adapter")):
            self.assertLess((expected - logits(model)).abs().max().item(), 1e-4)
        shutil.rmtree(self.folder / "run")

    def refuse(self, text, targets=("q_proj", "v_proj"), rank=4, alpha=8, **options):
        """Before anything is launched, and by name."""
        self.make(**options)
        done = program("validate", ROOT / "pipelines/sft.toml", *self.settings(rank, alpha, targets))
        self.assertEqual(done.returncode, WRONG_PIPELINE, done.stderr)
        self.assertIn(text, done.stderr)


class PeftAdapters(Adapters):
    def test_factors_are_those_of_peft(self):
        self.check()
        self.check(r=1, lora_alpha=3, rank=1, alpha=3)
        self.check(dtype=torch.bfloat16)
        self.check(target_modules="all-linear", targets=("all-linear",))
        self.check(lora_dropout=0.1, bias="all", init_lora_weights="gaussian")  # no weight of this model is a bias

    def test_how_much_they_count_is_too(self):
        self.check(use_rslora=True, rank=4, alpha=16)
        self.check(lora_alpha=4, alpha_pattern={"q_proj": 8, "^model.layers.0.self_attn.v_proj": 8, "v_proj": 8})

    def test_those_of_some_layers_are_named(self):
        self.check(target_modules=["q_proj"], layers_to_transform=[0], targets=("layers.0.self_attn.q_proj",))
        self.refuse('such as "model.layers.0.self_attn.q_proj"', layers_to_transform=[0])

    def test_another_base_is_refused(self):
        for init in ("pissa", "olora"):
            self.refuse(f'init_lora_weights is "{init}"', init_lora_weights=init)

    def test_another_computation_is_refused(self):
        self.refuse("use_dora is true", use_dora=True)
        self.refuse("alora_invocation_tokens is [3,4]", alora_invocation_tokens=[3, 4])

    def test_what_else_was_trained_is_refused(self):
        self.refuse("is no factor of a matrix", modules_to_save=["embed_tokens"])
        self.refuse("is no factor of a matrix", target_modules=["q_proj", "v_proj", "embed_tokens"])

    def test_another_scale_is_refused(self):
        self.refuse("counts 4.0 times, here 2.0 times", use_rslora=True)
        self.refuse('the pattern ".*v_proj" is no name', alpha_pattern={".*v_proj": 64})


class FusedMatrices(Adapters):
    """Tensors of the base that are several matrices of ours: PEFT has one A for all of them."""

    def base(self, model_type, **settings):
        self.BASE = self.folder / "base"
        torch.manual_seed(3)
        sizes = {"vocab_size": 98, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "eos_token_id": 1,
                 "bos_token_id": None, "pad_token_id": 0, "initializer_range": 0.2}
        AutoModelForCausalLM.from_config(AutoConfig.for_model(model_type, **sizes, **settings)).save_pretrained(self.BASE)
        for name in ("tokenizer.json", "tokenizer_config.json"):
            shutil.copy(Adapters.BASE / name, self.BASE)

    def test_parts_begin_with_the_one_factor_of_peft(self):
        self.base("gpt2", n_positions=64)
        self.check(target_modules=["c_attn"], targets=("c_attn",))
        self.check(target_modules=["c_attn", "c_fc"], targets=("c_attn", "c_fc"))
        self.base("phi3", intermediate_size=48, num_key_value_heads=2, max_position_embeddings=64)
        self.check(target_modules=["qkv_proj", "o_proj"], targets=("qkv_proj", "o_proj"))
        self.check(target_modules="all-linear", targets=("all-linear",))

    def test_what_cannot_be_told_apart_is_refused(self):
        self.base("gpt2", n_positions=64)
        self.refuse("share their factors, which are of rank 12", target_modules=["c_attn"], targets=("c_attn",), r=12,
                    lora_alpha=24)
        self.refuse("changes parts of it that have none here", target_modules=["c_attn"], targets=("c_attn[query]",))


if __name__ == "__main__":
    logging.disable_progress_bar()
    unittest.main(argv=sys.argv[:1], verbosity=2)
