"""`plan --fit`: with which changes a pipeline fits into the memory that there is."""

import json
import shutil
import unittest

from support import DONE, ROOT, WRONG_PIPELINE, Case, run, sets

PPO, GRPO = ROOT / "pipelines/ppo.toml", ROOT / "pipelines/grpo.toml"
LLAMA_8B = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
            "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 128256,
            "max_position_embeddings": 16384, "rms_norm_eps": 1e-5, "rope_theta": 500000.0, "hidden_act": "silu",
            "tie_word_embeddings": False, "torch_dtype": "bfloat16"}


class Fit(Case):
    def model(self):
        """Of 8 billion parameters, of which there is nothing here but its config.json."""
        model = self.folder / "llama-8b"
        if not model.exists():
            shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", model, ignore=shutil.ignore_patterns("*.safetensors"))
            (model / "config.json").write_text(json.dumps(LLAMA_8B))
        return str(model)

    def large(self, pipeline, *models, **more):
        checkpoints = {f"models.{name}.checkpoint": self.model() for name in models}
        return [pipeline, *sets(**checkpoints, **{"models.actor.dtype": "bfloat16"}, **more)]

    def fit(self, *arguments):
        done = run("plan", "--fit", "--format", "json", *arguments, timeout=300)
        return done.returncode, json.loads(done.stdout), done.stderr

    def plan(self, arguments, way):
        return run("plan", *arguments, *(word for setting in way["sets"] for word in ("--set", setting)))


class Large(Fit):
    def test_each_way_is_accepted_and_none_has_a_change_too_many(self):
        arguments = [*self.large(PPO, "actor", "reference", "critic", **{"runtime.memory_gib": 48}), "--ranks", "4"]
        refused = run("plan", *arguments)
        self.assertEqual(refused.returncode, WRONG_PIPELINE)
        self.assertIn("needs up to 221 GB of memory and does not fit into 51.5 GB", refused.stderr)
        self.assertIn("lora in [models.actor] takes up to 48.2 GB less", refused.stderr)
        self.assertIn('base_of = "actor" in [models.reference], beside that lora, takes 32.1 GB less', refused.stderr)

        code, found, _ = self.fit(*arguments)
        self.assertEqual((code, found["fits"]), (DONE, False))
        self.assertTrue(found["ways"])
        for way in found["ways"]:
            accepted = self.plan(arguments, way)
            self.assertEqual(accepted.returncode, DONE, accepted.stderr)
            self.assertLessEqual(way["peak_bytes"], way["there_bytes"])
            for remedy in (found["remedies"][index] for index in way["remedies"]):
                rest = {"sets": [setting for setting in way["sets"] if setting not in remedy["sets"]]}
                self.assertEqual(self.plan(arguments, rest).returncode, WRONG_PIPELINE, f"{remedy['name']} is not needed")

    def test_four_models_of_a_ppo_on_four_cards(self):
        judge = f"""
extends = "{PPO}"
[models.judge]
checkpoint = "{self.model()}"
dtype = "bfloat16"
head = "value"
[nodes]
score = false
[nodes.judge]
type = "reward_model"
inputs = ["generate"]
model = "judge"
[nodes.rewards]
inputs = ["judge", "reference"]
"""
        bfloat16 = {f"models.{name}.dtype": "bfloat16" for name in ("reference", "critic")}
        arguments = [*self.large(self.write("four.toml", judge), "actor", "reference", "critic", **bfloat16,
                                 **{"runtime.memory_gib": 48}), "--ranks", "4"]
        refused = run("plan", *arguments)
        self.assertEqual(refused.returncode, WRONG_PIPELINE)
        self.assertRegex(refused.stderr, r"needs up to 2\d\d GB of memory and does not fit into 51.5 GB")
        self.assertRegex(refused.stderr, r"= weights +1\d\d GB")
        code, found, stderr = self.fit(*arguments)
        self.assertEqual(code, DONE, stderr)
        self.assertIn("cluster.roles.rollout.ranks=2", found["ways"][0]["sets"])
        self.assertEqual(self.plan(arguments, found["ways"][0]).returncode, DONE)

    def test_long_answers_of_large_groups_stay_within_the_budget(self):
        wide = {"nodes.prompts.groups_per_iteration": 256, "nodes.generate.samples_per_prompt": 16,
                "nodes.generate.max_new_tokens": 8192, "budget.tokens_in_flight": 262144, "budget.micro_batch_tokens": "auto",
                "runtime.memory_gib": 80, "models.reference.dtype": "bfloat16"}
        arguments = [*self.large(GRPO, "actor", "reference", **wide), "--ranks", "8"]
        code, found, stderr = self.fit(*arguments)
        self.assertEqual(code, DONE, stderr)
        way = found["ways"][0]
        simulated = run("simulate", "--iterations", "1", "--format", "json",
                        *arguments, *(word for setting in way["sets"] for word in ("--set", setting)))
        self.assertEqual(simulated.returncode, DONE, simulated.stderr)
        (variant,) = json.loads(simulated.stdout)["variants"]
        self.assertFalse(variant["stalls"])
        self.assertLessEqual(variant["tokens_in_flight_peak"], variant["budget"])

    def test_the_fastest_comes_first(self):
        arguments = [*self.large(GRPO, "actor", "reference", **{"runtime.memory_gib": 60, "models.reference.dtype": "bfloat16"}),
                     "--ranks", "8"]
        code, found, _ = self.fit(*arguments)
        self.assertEqual(code, DONE)
        seconds = [way["iteration_seconds"] for way in found["ways"]]
        self.assertGreaterEqual(len(seconds), 2)
        self.assertEqual(seconds, sorted(seconds))

    def test_what_nobody_trains_may_be_quantised(self):
        reference = {"models.reference.checkpoint": self.model(), "models.reference.dtype": "bfloat16", "runtime.memory_gib": 12}
        code, found, _ = self.fit(GRPO, *sets(**reference))
        self.assertEqual(code, DONE)
        self.assertEqual([way["sets"] for way in found["ways"]],
                         [[f"models.reference.quantization={to}"] for to in ("int8", "int4")])
        names = [remedy["name"] for remedy in found["remedies"] if "quantization" in remedy["name"]]
        # the actor is trained
        self.assertEqual(names, [f'quantization = "{to}" in [models.reference]' for to in ("int8", "int4")])
        for way in found["ways"]:
            self.assertEqual(self.plan([GRPO, *sets(**reference)], way).returncode, DONE)

    def test_is_refused_where_nothing_is_enough(self):
        arguments = self.large(PPO, "actor", "reference", "critic", **{"runtime.memory_gib": 24})
        refused = run("plan", "--fit", *arguments)
        self.assertEqual(refused.returncode, WRONG_PIPELINE)
        self.assertRegex(refused.stderr, r"error: nothing that is known makes ppo fit: of what was tried the least needs "
                         r"up to 50.5 GB of 25.8 GB")
        self.assertIn("lora in [models.actor]", refused.stdout)


class OnADevice(Fit):
    def test_is_the_memory_that_is_searched_for(self):
        device = {'devices."cuda:0".memory_gib': 80, "runtime.memory_gib": 512, "models.actor.device": "cuda:0",
                  "models.reference.device": "cuda:0", "models.reference.dtype": "bfloat16"}
        code, found, _ = self.fit(*self.large(GRPO, "actor", "reference", **device))
        self.assertEqual((code, found["place"], found["fits"]), (DONE, "cuda:0", False))
        self.assertIn("models.actor.lora.rank=16", found["ways"][0]["sets"])


class Small(Fit):
    def test_says_what_fits_as_it_is(self):
        shown = run("plan", "--fit", PPO)
        self.assertEqual(shown.returncode, DONE, shown.stderr)
        self.assertRegex(shown.stdout, r"^ppo needs up to .*: it fits as it is; an iteration takes ")
        self.assertNotIn("--set", shown.stdout)

    def test_takes_fewer_tokens_where_they_are_all_that_is_too_much(self):
        more = {"budget.tokens_in_flight": 2_000_000, "nodes.prompts.groups_per_iteration": 8_000, "runtime.memory_gib": 0.3,
                "nodes.generate.max_running_samples": 65536}
        arguments = [PPO, *sets(**more)]
        code, found, stderr = self.fit(*arguments)
        self.assertEqual(code, DONE, stderr)
        (way,) = [way for way in found["ways"] if len(way["sets"]) == 1]
        self.assertRegex(way["sets"][0], r"^budget\.tokens_in_flight=\d+$")
        self.assertEqual(self.plan(arguments, way).returncode, DONE)
        tokens = int(way["sets"][0].split("=")[1])
        self.assertEqual(self.plan(arguments, {"sets": [f"budget.tokens_in_flight={2 * tokens}"]}).returncode, WRONG_PIPELINE)

    def test_other_mistakes_are_told_as_ever(self):
        refused = run("plan", "--fit", PPO, "--set", "nodes.generate.max_new_token=6")
        self.assert_refused(refused, "max_new_tokens")


if __name__ == "__main__":
    unittest.main()
