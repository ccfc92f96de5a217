"""Models whose matrices are quantised: against models that hold the values of the codes, which are computed here from the
published definitions, and the memory that they take."""

import json
import shutil
import struct
import unittest

from support import DONE, MODEL, ROOT, WRONG_PIPELINE, Case, read_safetensors, run, safetensors, sets

EXAMPLE = ROOT / "examples/09_qlora/qlora.toml"


def floats(content):
    return struct.unpack(f"<{len(content) // 4}f", content)


def bytes_of(values):
    return struct.pack(f"<{len(values)}f", *values)


def float32(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def values_of_int8(group):
    largest = max(abs(w) for w in group)
    scale = float32(largest / 127) if largest else 1.0
    return [float32(min(max(round(float32(w / scale)), -127), 127) * scale) for w in group]


def values_of_int4(group):
    low, high = min(*group, 0.0), max(*group, 0.0)
    scale = float32(float32(high - low) / 15) if high > low else 1.0
    zero = min(round(float32(-low / scale)), 15)
    return [float32((min(max(round(float32(w / scale)) + zero, 0), 15) - zero) * scale) for w in group]


def is_matrix(name):
    """Of a layer, and no norm."""
    return ".layers." in name and name.endswith("_proj.weight")


def values_of(content, shape, size, of_group):
    """A matrix as its codes say it, `size` inputs of an output a group."""
    weights, inputs = floats(content), shape[1]
    values = []
    for row in range(0, len(weights), inputs):
        for first in range(0, inputs, size):
            values += of_group(weights[row + first:row + min(first + size, inputs)])
    return bytes_of(values)


class Compared(Case):
    def samples(self, name, checkpoint, **settings):
        """Of a model that is only sampled from, and of another one that says how likely they are."""
        pipeline = self.write("evaluate.toml", f"""extends = "{ROOT / 'pipelines/evaluate.toml'}"
[models.scored]
checkpoint = "{MODEL}"
[nodes.scored]
type = "logprobs"
inputs = ["score"]
model = "scored"
[nodes.samples]
inputs = ["scored"]
fields = ["response", "rollout_logprobs", "reference_logprobs"]
""")
        of_both = {f"models.{model}.{key}": value for model in ("policy", "scored")
                   for key, value in {"checkpoint": str(checkpoint), **settings}.items()}
        folder = self.folder / name
        done = run("run", pipeline, "--run-dir", folder,
                   *sets(**of_both, **{"nodes.generate.temperature": 1, "nodes.prompts.groups_per_iteration": 100}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return (folder / "samples.jsonl").read_text()

    def folder_with(self, name, change, of=MODEL):
        """A copy of a model with change(name, dtype, shape, bytes) instead of each tensor."""
        folder = self.folder / name
        shutil.copytree(of, folder)
        tensors = {}
        for tensor, entry in read_safetensors(of / "model.safetensors").items():
            tensors.update(change(tensor, *entry))
        (folder / "model.safetensors").write_bytes(safetensors(tensors))
        return folder


class Values(Compared):
    """The same samples and log-probabilities, to the last digit."""

    def test_are_those_that_the_definition_says(self):
        for kind, of_group, size, dtype in (("int8", values_of_int8, 64, "float32"), ("int4", values_of_int4, 32, "bfloat16")):
            with self.subTest(kind):
                def with_values(name, kept, shape, content):
                    return {name: (kept, shape, values_of(content, shape, size, of_group) if is_matrix(name) else content)}
                wide = self.folder_with(f"{kind}-values", with_values)
                ours = self.samples(kind, MODEL, quantization=kind, quantization_group=size, dtype=dtype)
                self.assertEqual(ours, self.samples(f"{kind}-of-values", wide, dtype=dtype))
                self.assertNotEqual(ours, self.samples(f"{kind}-not", MODEL, dtype=dtype))


GROUP = 32
AWQ_ORDER = (0, 2, 4, 6, 1, 3, 5, 7)
GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": GROUP, "desc_act": False, "sym": False, "damp_percent": 0.01,
        "checkpoint_format": "gptq"}
AWQ = {"quant_method": "awq", "bits": 4, "group_size": GROUP, "zero_point": True, "version": "gemm",
       "modules_to_not_convert": None}


def float16(value):
    return struct.unpack("<e", struct.pack("<e", value))[0]


class Codes:
    """A matrix [N, K] in codes of 4 bits, with a scale in float16 and a zero for each group of inputs."""

    def __init__(self, content, shape):
        self.outputs, self.inputs = shape
        self.groups = self.inputs // GROUP
        weights = floats(content)
        self.scales, self.zeros, self.codes = [], [], []
        for row in range(0, len(weights), self.inputs):
            for first in range(row, row + self.inputs, GROUP):
                group = weights[first:first + GROUP]
                low, high = min(*group, 0.0), max(*group, 0.0)
                scale = float16((high - low) / 15)
                zero = min(max(round(-low / scale), 1), 15)
                self.scales.append(scale)
                self.zeros.append(zero)
                self.codes += [min(max(round(w / scale) + zero, 0), 15) for w in group]

    def values(self):
        of = [self.scales[i // GROUP] * (code - self.zeros[i // GROUP]) for i, code in enumerate(self.codes)]
        return bytes_of(of)

    def code(self, output, input):
        return self.codes[output * self.inputs + input]

    def words(self, rows, columns, nibble):
        """Words [rows, columns] of nibble(row, column, place), the first in the lowest bits."""
        words = (sum(nibble(row, column, place) << 4 * place for place in range(8)) for row in range(rows)
                 for column in range(columns))
        return struct.pack(f"<{rows * columns}I", *words)

    def tensors(self, module, awq, less=1):
        """As a folder has them; `less`: of GPTQ's zeros."""
        K, N, G = self.inputs, self.outputs, self.groups
        if awq:
            codes = ("I32", (K, N // 8), self.words(K, N // 8, lambda k, word, i: self.code(8 * word + AWQ_ORDER[i], k)))
            zeros = self.words(G, N // 8, lambda g, word, i: self.zeros[(8 * word + AWQ_ORDER[i]) * G + g])
        else:
            codes = ("I32", (K // 8, N), self.words(K // 8, N, lambda word, n, i: self.code(n, 8 * word + i)))
            zeros = self.words(G, N // 8, lambda g, word, i: self.zeros[(8 * word + i) * G + g] - less)
        scales = struct.pack(f"<{G * N}e", *(self.scales[n * G + g] for g in range(G) for n in range(N)))
        tensors = {f"{module}.qweight": codes, f"{module}.qzeros": ("I32", (G, N // 8), zeros),
                   f"{module}.scales": ("F16", (G, N), scales)}
        if not awq:
            tensors[f"{module}.g_idx"] = ("I32", (K,), struct.pack(f"<{K}i", *(k // GROUP for k in range(K))))
        return tensors


class Folders(Compared):
    """Of GPTQ and AWQ."""

    def quantised_folder(self, name, config, awq=False, less=1, change=lambda tensors: tensors):
        def with_codes(tensor, dtype, shape, content):
            if not is_matrix(tensor):
                return {tensor: (dtype, shape, content)}
            return change(Codes(content, shape).tensors(tensor.removesuffix(".weight"), awq, less))
        folder = self.folder_with(name, with_codes)
        if config is not None:
            self.set_config(folder, config)
        return folder

    def set_config(self, folder, config):
        whole = json.loads((folder / "config.json").read_text()) | {"quantization_config": config}
        (folder / "config.json").write_text(json.dumps(whole))

    def test_give_what_their_values_give(self):
        def with_values(name, dtype, shape, content):
            return {name: (dtype, shape, Codes(content, shape).values() if is_matrix(name) else content)}
        expected = self.samples("of-values", self.folder_with("values", with_values))
        gptq, awq = self.quantised_folder("gptq", GPTQ), self.quantised_folder("awq", AWQ, awq=True)
        beside = self.quantised_folder("gptq_v2", None, less=0)
        older = {key: value for key, value in GPTQ.items() if key != "quant_method"}
        (beside / "quantize_config.json").write_text(json.dumps(older | {"checkpoint_format": "gptq_v2"}))
        for folder in (gptq, awq, beside):
            self.assertEqual(self.samples(f"of-{folder.name}", folder), expected, folder.name)
            verified = run("model", "verify", folder)
            self.assertEqual(verified.returncode, DONE, verified.stdout)
        self.trains(gptq)

    def trains(self, folder):
        """Adapters, and what is saved is no folder of codes any more."""
        actor = {"models.actor.checkpoint": str(folder), "models.actor.quantization": None, "pipeline.iterations": 1}
        pipeline = self.write("lora.toml", (EXAMPLE.read_text().replace('quantization = "int4"', "").replace(
            "quantization_group = 64", "").replace("../../pipelines", str(ROOT / "pipelines"))))
        done = run("run", pipeline, "--run-dir", self.folder / "trained", *sets(**actor))
        self.assertEqual(done.returncode, DONE, done.stderr)
        saved = self.folder / "trained/checkpoint/actor"
        self.assertNotIn("quantization_config", json.loads((saved / "config.json").read_text()))
        self.assertEqual(
            run("validate", ROOT / "pipelines/evaluate.toml", "--set", f"models.policy.checkpoint={saved}").returncode, DONE)

    def refused(self, folder, *texts, **settings):
        done = run("validate", EXAMPLE.parent / "../../pipelines/evaluate.toml",
                   *sets(**{"models.policy.checkpoint": str(folder)}, **settings))
        self.assert_refused(done, *texts)

    def test_of_other_kinds_are_refused_by_file_and_key(self):
        folder = self.folder / "model"
        shutil.copytree(MODEL, folder)
        for config, *texts in ((GPTQ | {"bits": 8}, "quantization_config.bits", "supported: 4"),
                               (GPTQ | {"desc_act": True}, "desc_act"),
                               (GPTQ | {"group_size": 48}, "group_size", "multiples of 32"),
                               (AWQ | {"version": "gemv"}, "version", "gemv"), (AWQ | {"rotated": True}, "rotated"),
                               ({"quant_method": "bitsandbytes", "load_in_4bit": True}, "quant_method", "bitsandbytes")):
            self.set_config(folder, config)
            self.refused(folder, str(folder / "config.json"), *texts)

    def test_are_neither_trained_nor_quantised_again(self):
        folder = self.quantised_folder("gptq", GPTQ)
        self.refused(folder, "trained, and cannot be quantised", "lora", **{"models.policy.optimizer.learning_rate": 1e-4})
        self.refused(folder, "codes of 4 bits", **{"models.policy.quantization": "int8"})

    def test_with_damaged_tensors_are_refused_by_name(self):
        def shuffled(tensors):
            return {name: (dtype, shape, content[4:] + content[:4] if name.endswith("g_idx") else content)
                    for name, (dtype, shape, content) in tensors.items()}

        def without_zeros(tensors):
            return {name: entry for name, entry in tensors.items() if not name.endswith("0.mlp.up_proj.qzeros")}
        for name, change, *texts in (("order", shuffled, "g_idx", "desc_act"),
                                     ("zeros", without_zeros, "model.layers.0.mlp.up_proj.qzeros", "missing")):
            folder = self.quantised_folder(name, GPTQ, change=change)
            done = run("run", ROOT / "pipelines/evaluate.toml", "--run-dir", self.folder / f"run-{name}", "--set",
                       f"models.policy.checkpoint={folder}")
            self.assertNotEqual(done.returncode, DONE)
            for text in (str(folder / "model.safetensors"), *texts):
                self.assertIn(text, done.stderr)
        self.assertIn("model.layers.0.mlp.up_proj.qzeros", run("model", "verify", folder).stdout)


class Draft(Case):
    """The first weights of the actor, in 4 bits, guess what it says next."""

    SMALL = {"pipeline.iterations": 3, "schedule.policy_lag": 1, "nodes.prompts.groups_per_iteration": 8,
             "nodes.generate.max_new_tokens": 40, "nodes.generate.max_running_samples": 3,
             "nodes.generate.ignore_end_of_sequence": True, "nodes.generate.stop": ["77", "+1"], "nodes.generate.top_p": 0.9,
             "nodes.held_out.groups_per_iteration": 8}

    def pipeline(self, checkpoint=MODEL):
        return self.write("draft.toml", f"""extends = "{ROOT / 'pipelines/grpo.toml'}"
[models.draft]
checkpoint = "{checkpoint}"
quantization = "int4"
quantization_group = 32
[nodes.generate]
speculation = "draft"
draft = "draft"
""")

    def trained(self, name, pipeline):
        folder = self.folder / name
        done = run("run", pipeline, "--run-dir", folder, *sets(**self.SMALL))
        self.assertEqual(done.returncode, DONE, done.stderr)
        return folder, [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def test_changes_neither_samples_nor_weights_and_takes_what_the_plan_says(self):
        (plain, without), (folder, rows) = (self.trained("plain", ROOT / "pipelines/grpo.toml"),
                                            self.trained("guessed", self.pipeline()))
        weights = "checkpoint/actor/model.safetensors"
        self.assertEqual((folder / weights).read_bytes(), (plain / weights).read_bytes())
        for one, other in zip(without, rows, strict=True):
            timed = ("time/", "memory/", "engine/", "held_out/time/", "held_out/memory/", "held_out/engine/")
            self.assertEqual(*({key: value for key, value in row.items() if not key.startswith(timed)} for row in (one, other)))
        steps, drafted, kept = (sum(row[f"engine/{name}"] for row in rows)
                                for name in ("guessed_steps", "drafted_tokens", "kept_drafts"))
        self.assertGreater(kept, drafted / 2)
        self.assertGreater(drafted, steps)
        memory = {entry["name"]: entry for entry in json.loads((folder / "memory.json").read_text())["classes"]}
        self.assertEqual(memory["weights"]["peak_bytes"], memory["weights"]["planned_bytes"])
        for entry in (entry for entry in memory.values() if entry["name"] != "program"):
            self.assertLessEqual(entry["peak_bytes"], entry["planned_bytes"], entry["name"])
        self.simulates(folder, steps, drafted, kept)

    def simulates(self, folder, steps, drafted, kept):
        costs = json.loads((folder / "costs.json").read_text())["nodes"]["generate"]
        self.assertAlmostEqual(costs["drafted_per_step"], drafted / steps)
        self.assertAlmostEqual(costs["kept_per_step"], kept / steps)
        def notes(*words):
            done = run("simulate", self.folder / "draft.toml", *words, "--format", "json", *sets(**self.SMALL))
            self.assertEqual(done.returncode, DONE, done.stderr)
            (variant,) = json.loads(done.stdout)["variants"]
            return variant["notes"], variant["seconds"]
        (as_measured,), seconds = notes("--costs", folder)
        self.assertIn(f"guesses as it was measured: {kept / steps:.2f} of {drafted / steps:.2f} tokens", as_measured)
        (assumed,), longer = notes("--costs", folder, "--guesses-right", "0")
        self.assertIn("a share of 0.00 taken to be right", assumed)
        self.assertGreater(longer, seconds)
        (nothing,), _ = notes()
        self.assertIn("nothing says how often it is right", nothing)

    def test_of_another_vocabulary_is_refused(self):
        folder = self.folder / "padded"
        shutil.copytree(MODEL, folder)
        config = json.loads((folder / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {"vocab_size": config["vocab_size"] + 6}))
        done = run("validate", self.pipeline(folder))
        self.assert_refused(done, f"has {config['vocab_size'] + 6} tokens; model 'actor' has {config['vocab_size']}",
                            '"vocab_size"')


class Memory(Case):
    """A model of 7 billion parameters with adapters, of which there is nothing here but its config.json, in 24 GiB."""

    LLAMA_7B = {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "hidden_size": 4096, "intermediate_size": 11008,
                "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32, "vocab_size": 32000,
                "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "hidden_act": "silu", "tie_word_embeddings": False,
                "torch_dtype": "bfloat16"}
    MATRICES = 32 * (4 * 4096 * 4096 + 3 * 4096 * 11008)

    def plan(self, *more, **settings):
        model = self.folder / "llama-7b"
        if not model.exists():
            shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", model, ignore=shutil.ignore_patterns("*.safetensors"))
            (model / "config.json").write_text(json.dumps(self.LLAMA_7B))
        small = {"models.actor.checkpoint": str(model), "models.actor.lora.rank": 16, "models.actor.quantization_group": 128,
                 "runtime.memory_gib": 24, "budget.tokens_in_flight": 8192, "budget.micro_batch_tokens": 2048,
                 "nodes.generate.max_new_tokens": 256, "nodes.generate.samples_per_prompt": 4,
                 "nodes.generate.max_running_samples": 8, "nodes.prompts.groups_per_iteration": 8,
                 "checkpoint.every_iterations": 0}
        return run("plan", EXAMPLE, *sets(**{**small, **settings}), *more)

    def test_fits_in_4_bits(self):
        predicted = {}
        for kind in ("int4", "int8"):
            done = self.plan("--format", "json", **{"models.actor.quantization": kind})
            self.assertEqual(done.returncode, DONE, done.stderr)
            predicted[kind] = json.loads(done.stdout)["predicted"]["weights_bytes"]
        # Half a byte a weight less, and a byte of zero a group more; rows end on multiples of 16 bytes.
        difference = self.MATRICES / 2 - self.MATRICES / 128
        self.assertAlmostEqual((predicted["int8"] - predicted["int4"]) / difference, 1, delta=1e-3)

    def test_does_not_fit_without(self):
        refused = self.plan(**{"models.actor.quantization": "none"})
        self.assertEqual(refused.returncode, WRONG_PIPELINE, refused.stdout)
        self.assertRegex(refused.stderr, r"error: the run needs up to \d+(\.\d)? GB of .* does not fit into 25.8 GB")

    def test_takes_what_the_plan_says(self):
        folder = self.folder / "run"
        done = run("run", EXAMPLE, "--run-dir", folder, *sets(**{"pipeline.iterations": 2}))
        self.assertEqual(done.returncode, DONE, done.stderr)
        (weights,) = [entry
                      for entry in json.loads((folder / "memory.json").read_text())["classes"] if entry["name"] == "weights"]
        self.assertEqual(weights["peak_bytes"], weights["planned_bytes"])
        for row in (json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()):
            self.assertEqual(row["policy/logprob_difference_max"], 0)  # adapters are computed apart, when sampling too


if __name__ == "__main__":
    unittest.main()
