"""Memory: the report of a run, credit on demand, micro-batches and passes chosen by memory, and what happens when there is not
enough."""

import json
import pathlib
import re
import resource
import shutil
import sys
import time
import unittest

from support import DONE, FAILED, PPO, PROGRAM, ROOT, SMALL, WRONG_PIPELINE, Case, repeatable, run, sets, start

sys.path.append(str(ROOT / "bench"))
from harness import runs  # noqa: E402: pipelines of models of real shapes, which the benches time

NO_BARRIER = {"nodes.advantages.whiten": "none", "nodes.train.mini_batches": 1}


class Report(Case):
    def test_compares_each_class_with_the_plan(self):
        finished = self.run_ppo()
        report = json.loads((finished.folder / "memory.json").read_text())
        classes = {entry["name"]: entry for entry in report["classes"]}
        plan = json.loads(run("plan", PPO, "--format", "json", *sets(**SMALL)).stdout)["predicted"]
        for name, key in (("weights", "weights_bytes"), ("gradients", "gradient_bytes"), ("optimizer", "optimizer_bytes"),
                          ("checkpoint copy", "checkpoint_copy_bytes"), ("KV cache", "kv_bytes"), ("columns", "column_bytes"),
                          ("activations", "activation_bytes")):
            self.assertEqual(classes[name]["planned_bytes"], plan[key], name)
            self.assertGreater(classes[name]["peak_bytes"], 0, name)
            self.assertLessEqual(classes[name]["peak_bytes"], plan[key], name)
        for name in ("gradients", "optimizer", "checkpoint copy"):
            self.assertEqual(classes[name]["peak_bytes"], classes[name]["planned_bytes"], name)
        self.assertGreaterEqual(report["peak_bytes"], classes["program"]["peak_bytes"])

    def test_has_no_copy_for_checkpoints_where_none_is_wanted(self):
        finished = self.run_ppo(**{"checkpoint.copy": "none", "checkpoint.every_iterations": 1})
        classes = {entry["name"] for entry in json.loads((finished.folder / "memory.json").read_text())["classes"]}
        self.assertNotIn("checkpoint copy", classes)
        shown = run("plan", PPO, *sets(**SMALL, **{"checkpoint.copy": "none"})).stdout
        self.assertIn("written while training waits, without a copy in memory, as [checkpoint] copy says\n", shown)
        self.assertNotIn("checkpoint copy", shown)
        self.assertIn("from a copy in memory, which has room for it\n", run("plan", PPO, *sets(**SMALL)).stdout)

    def test_is_shown_at_the_end_and_by_top(self):
        finished = self.run_ppo()
        shown = run("top", finished.folder).stdout
        for text in (finished.stdout, shown):
            for name in ("weights", "KV cache", "columns", "activations", "resident"):
                self.assertRegex(text, rf"(?m)\b{name} ")


class OnADevice(Case):
    """A model of 8 billion parameters on one card of 80 GB, of which there is nothing here but its config.json."""

    LLAMA_8B = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 14336,
                "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8, "head_dim": 128,
                "vocab_size": 128256, "max_position_embeddings": 8192, "rms_norm_eps": 1e-5, "rope_theta": 500000.0,
                "hidden_act": "silu", "tie_word_embeddings": False, "torch_dtype": "bfloat16"}

    def plan(self, *more):
        model = self.folder / "llama-8b"
        if not model.exists():
            shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", model, ignore=shutil.ignore_patterns("*.safetensors"))
            (model / "config.json").write_text(json.dumps(self.LLAMA_8B))
        settings = {"models.actor.checkpoint": str(model), "models.actor.dtype": "bfloat16", "models.actor.device": "cuda:0",
                    'devices."cuda:0".memory_gib': 80, "runtime.memory_gib": 512, "budget.tokens_in_flight": 24576,
                    "budget.micro_batch_tokens": 8192, "nodes.generate.max_new_tokens": 512,
                    "nodes.generate.max_running_samples": 64, "models.reference.checkpoint": str(model),
                    "models.reference.dtype": "bfloat16", "models.reference.device": "cuda:0"}
        return run("plan", ROOT / "pipelines/grpo.toml", *sets(**settings), *more)

    def test_fits_with_adapters(self):
        lora = ("--set", "models.actor.lora.rank=16")
        shown = self.plan(*lora)
        self.assertEqual(shown.returncode, DONE, shown.stderr)
        self.assertRegex(shown.stdout, r"host +weights 0 B")
        self.assertRegex(shown.stdout, r"cuda:0 +weights 6\d\.\d GB   gradients .*   peak \d\d\.\d GB of 85\.9 GB")
        (device,) = json.loads(self.plan(*lora, "--format", "json").stdout)["devices"]
        predicted = device["predicted"]
        self.assertEqual(device["name"], "cuda:0")
        self.assertEqual(predicted["total_bytes"],
                         sum(bytes for name, bytes in predicted.items() if name not in ("total_bytes", "machine_bytes")))
        self.assertEqual((predicted["column_bytes"], predicted["checkpoint_copy_bytes"]), (0, 0))

    def test_is_refused_without_them_with_the_sum(self):
        refused = self.plan()
        self.assertEqual(refused.returncode, WRONG_PIPELINE, refused.stdout)
        self.assertRegex(refused.stderr,
                         r"error: the run needs up to \d+ GB of the memory of cuda:0 and does not fit into 85.9 GB")
        self.assertRegex(refused.stderr, r"= optimizer +64.2 GB")
        self.assertIn("lora in [models.actor] takes up to", refused.stderr)


class Other(Case):
    """What no class counts may not grow with the model: at most 3 % of the whole and 150 MB."""

    def test_is_small_whatever_the_size(self):
        for size in ("4m", "29m"):  # bench/real_sizes.py asks larger ones
            with self.subTest(size):
                pipeline = runs.Pipeline(self.folder / size, size, runs.GRPO_WITH_REFERENCE, "bfloat16", prompts=2, samples=2,
                                         new=32)
                pipeline.run(PROGRAM, iterations=1)
                (other,) = [entry for entry in pipeline.memory["classes"] if entry["name"] == "other"]
                self.assertLessEqual(other["peak_bytes"], 0.03 * pipeline.memory["peak_bytes"] + 150e6)
                self.assertLessEqual(pipeline.memory["peak_bytes"], 1.05 * pipeline.memory["planned_bytes"])


class OnDemand(Case):
    def test_gives_the_same_run_within_a_budget_that_admits_fewer_worst_cases(self):
        small = {**NO_BARRIER, "budget.tokens_in_flight": 194, "nodes.held_out.tokens_in_flight": 14,
                 "budget.micro_batch_tokens": 112, "pipeline.iterations": 2}
        runs = [self.run_ppo(name, pipeline=self.saving_pipeline(), **small, **{"budget.admission": name})
                for name in ("worst_case", "on_demand")]
        self.assertEqual(*(repeatable(finished.metrics) for finished in runs))
        self.assertEqual(*(finished.samples for finished in runs))
        for row in runs[1].metrics:
            self.assertLessEqual(row["engine/tokens_in_flight_max"], 194)

    def test_is_refused_where_nothing_takes_credit_later(self):
        path = self.write("p.toml", f'extends = "{PPO}"\nbudget.admission = "later"\n')
        self.assert_refused(run("validate", path), "admission", "worst_case", "on_demand")


class Prompts(Case):
    def test_that_are_too_long_are_left_out_and_counted(self):
        rows = [{"prompt": "1+1=", "label": "2"}, {"prompt": "100000+200000=", "label": "300000"}] * 8
        data = self.write("rows.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
        settings = {"nodes.prompts.path": str(data), "nodes.generate.max_prompt_tokens": 8,
                    "nodes.prompts.groups_per_iteration": 16, "nodes.prompts.shuffle": False, "pipeline.iterations": 1}
        finished = self.run_ppo(**settings, **{"nodes.generate.prompt_too_long": "drop"})
        self.assertEqual((finished.metrics[0]["rollout/dropped_prompts"], finished.metrics[0]["data/groups"]), (8, 8))


class MicroBatch(Case):
    def test_is_chosen_by_the_memory_that_there_is(self):
        def chosen(**settings):
            done = run("plan", PPO, "--config", *sets(**{**SMALL, "budget.micro_batch_tokens": "auto", **settings}))
            self.assertEqual(done.returncode, DONE, done.stderr)
            (line,) = [line for line in done.stdout.splitlines() if line.startswith("micro_batch_tokens")]
            self.assertIn("auto", line)
            return int(line.split("=")[1].split("#")[0])

        most = chosen(**{"budget.tokens_in_flight": 8448})
        self.assertEqual(most, 768)  # an iteration of 16 x 4 x 14 tokens
        self.assertEqual(chosen(**{"nodes.prompts.groups_per_iteration": 128}), 4096)  # half of what is in flight
        # Passes would shrink first; where they are as large as a micro-batch, that has to.
        less = chosen(**{"nodes.prompts.groups_per_iteration": 128, "runtime.memory_gib": 0.05, "budget.pass_tokens": 4096})
        self.assertLess(less, 4096)
        self.assertGreaterEqual(less, 56)
        plan = run("plan", PPO, *sets(**{**SMALL, "budget.micro_batch_tokens": "auto"})).stdout
        self.assertIn("micro-batch  768 tokens, chosen by the memory that is left", plan)


class Pass(Case):
    def plan(self, **settings):
        return json.loads(run("plan", PPO, "--format", "json", *sets(**{**SMALL, **settings})).stdout)

    def memory_for(self, pass_tokens):
        """GiB of which 85 % hold a run with such passes, and hardly more. A copy for checkpoints is given up before the pass
        becomes smaller."""
        return (self.plan(**{"budget.pass_tokens": pass_tokens, "checkpoint.copy": "none"})["predicted"]["total_bytes"] +
                500) / 0.85 / 2**30

    def test_bounds_what_is_computed_at_once(self):
        finished = self.run_ppo(**{"budget.pass_tokens": 64})
        report = json.loads((finished.folder / "memory.json").read_text())
        (activations,) = [entry for entry in report["classes"] if entry["name"] == "activations"]
        self.assertEqual(activations["planned_bytes"], self.plan(**{"budget.pass_tokens": 64})["predicted"]["activation_bytes"])
        self.assertLess(activations["planned_bytes"], self.plan()["predicted"]["activation_bytes"])
        self.assertLessEqual(activations["peak_bytes"], activations["planned_bytes"])

    def test_is_a_micro_batch_unless_memory_is_short(self):
        self.assertEqual(self.plan()["capacity"]["pass_tokens"], SMALL["budget.micro_batch_tokens"])
        short = {"runtime.memory_gib": self.memory_for(300)}
        chosen = self.plan(**short)["capacity"]["pass_tokens"]
        self.assertTrue(300 <= chosen < 400, chosen)
        self.assertIn(f"is computed in passes of at most {chosen}\n", run("plan", PPO, *sets(**{**SMALL, **short})).stdout)
        self.assertRegex(run("plan", PPO, "--config", *sets(**{**SMALL, **short})).stdout,
                         rf"(?m)^pass_tokens = {chosen} +# auto, default$")

    def test_stays_what_it_was_when_a_run_goes_on_with_other_memory(self):
        finished = self.run_ppo(**{"runtime.memory_gib": self.memory_for(300), "checkpoint.every_iterations": 1})
        (line,) = re.findall("(?m)^pass_tokens = [0-9]+", (finished.folder / "pipeline.toml").read_text())
        iterations = SMALL["pipeline.iterations"] + 1
        done = run("resume", finished.folder, *sets(**{"runtime.memory_gib": 0, "pipeline.iterations": iterations}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertIn(line + " ", (finished.folder / "pipeline.toml").read_text())


class NotEnough(Case):
    def wait_for(self, path, process):
        end = time.monotonic() + 60
        while not path.exists():
            self.assertIsNone(process.poll(), "the run ended early")
            self.assertLess(time.monotonic(), end)
            time.sleep(0.02)

    def test_while_running_ends_the_run_with_a_report_and_a_whole_checkpoint(self):
        folder = self.folder / "run"
        settings = {**SMALL, "pipeline.iterations": 100000, "checkpoint.every_iterations": 1, "budget.micro_batch_tokens": 4096,
                    "nodes.prompts.groups_per_iteration": 128, "nodes.generate.on": "cpu"}
        process = start("run", PPO, "--run-dir", folder, *sets(**settings), stdout=-1, stderr=-1, text=True)
        self.addCleanup(process.kill)
        self.wait_for(folder / "checkpoint/actor/config.json", process)
        resource.prlimit(process.pid, resource.RLIMIT_DATA, (1 << 20, 1 << 20))  # nothing more can be had
        stdout, stderr = process.communicate(timeout=60)
        self.assertEqual(process.returncode, FAILED, stderr + stdout)
        for text in ("node '", "out of memory", "activations", "peak", "pass_tokens", "last checkpoint: "):
            self.assertIn(text, stderr)
        for word in ("internal error", "terminate", "what():", "bug in sluice"):
            self.assertNotIn(word, stderr)
        self.assertIn("failed", stdout)
        checkpoint = folder / "checkpoint/actor"
        self.assertEqual(run("model", "verify", checkpoint).returncode, DONE)
        self.assertTrue((folder / "memory.json").exists())

    def test_while_loading_is_explained_and_leaves_no_folder(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_DATA, (600 << 20, 600 << 20))

        folder = self.folder / "run"
        settings = {**SMALL, "budget.tokens_in_flight": 5_000_000, "nodes.prompts.groups_per_iteration": 80_000,
                    "nodes.generate.max_running_samples": 65536, "runtime.memory_gib": 1000}
        done = run("run", PPO, "--run-dir", folder, *sets(**settings), preexec_fn=limit)
        self.assertEqual(done.returncode, FAILED, done.stderr + done.stdout)
        for text in ("not enough memory", "KV cache", "planned", "tokens_in_flight"):
            self.assertIn(text, done.stderr)
        self.assertFalse(pathlib.Path(folder).exists())


if __name__ == "__main__":
    unittest.main()
