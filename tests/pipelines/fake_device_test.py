"""Every pipeline runs with its models on devices that find raw access, mixing and missing waits (tests/fake_device/), under
another schedule each, and gives the numbers of the CPU."""

import array
import json
import os
import shutil
import unittest

from pipeline_case import DONE, ROOT, PipelineCase, few_groups, merged, run, sets, tables, training_state
from support import read_safetensors, with_roles

PLUGIN = os.environ["SLUICE_FAKE_DEVICE"]
TIMED = ("time/", "memory/", "engine/")
# Counts what is exactly 0, which rounding decides.
UNEVEN = {"advantage/zero_advantages"}
# Without a penalty nothing is learned from answers that are all wrong. With one AdamW makes whole steps out of its rounding.
OWN = {"ppo_gsm8k": {"nodes.rewards.kl_coefficient": 0}}
TOLERANCE = 1e-5
# The largest of thousands of differences that are rounding.
LARGEST = {"policy/logprob_difference_max": 1e-4}


def small(path):
    return few_groups(path) | OWN.get(path.stem, {})


def devices(path):
    """Models with weights of their own, on one device after the other."""
    models = [name for name, table in tables(merged(path), "models").items() if not {"base_of", "ema"} & set(table)]
    return {f"models.{name}.device": f"fake:{number % 2}" for number, name in enumerate(models)}


class FakeDevicePipelines(PipelineCase):
    schedule = 0

    def rows(self, path, name, *words, **overrides):
        FakeDevicePipelines.schedule += 1
        environment = {**os.environ, "SLUICE_FAKE_SCHEDULE": str(self.schedule)}
        result = run(*(words or ("run", path)), "--run-dir", self.folder / name, "--plugin", PLUGIN, *sets(**overrides),
                     env=environment)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return [json.loads(line) for line in (self.folder / name / "metrics.jsonl").read_text().splitlines()]

    def assert_alike(self, ours, theirs):
        self.assertEqual(len(ours), len(theirs))
        for here, there in zip(ours, theirs):
            here, there = ({key: row[key] for key in row if not key.startswith(TIMED) and key not in UNEVEN}
                           for row in (here, there))
            self.assertEqual(sorted(here), sorted(there))
            for key, value in there.items():
                if isinstance(value, (int, float)):
                    allowed = LARGEST.get(key, TOLERANCE) * (1 + abs(value))
                    self.assertLessEqual(abs(here[key] - value), allowed, f"{key}: {here[key]}, and {value} on the CPU")
                else:
                    self.assertEqual(here[key], value, key)

    # The fake devices give a power of two for each tensor, at most twice as much.
    def assert_planned_memory(self, name):
        report = json.loads((self.folder / name / "memory.json").read_text())
        for device in report["devices"]:
            self.assertGreater(device["peak_bytes"], 0, device)
            self.assertLessEqual(device["peak_bytes"], 2 * device["planned_bytes"], device)
            for of in device["classes"]:
                if of["name"] != "activations":  # what is none of the others, and so what those are rounded up by
                    self.assertLessEqual(of["peak_bytes"], of["planned_bytes"], (device["name"], of))
        host = {of["name"]: of["peak_bytes"] for of in report["classes"]}
        self.assertLessEqual({"weights", "gradients", "optimizer", "KV cache"} & set(host), set(), host)

    def compare(self, path, **overrides):
        overrides = small(path) | overrides
        there = self.rows(path, f"{path.stem}-there", **overrides, **devices(path))
        self.assert_planned_memory(f"{path.stem}-there")
        self.assert_alike(there, self.rows(path, f"{path.stem}-here", **overrides))
        return there

    def test_every_pipeline_gives_the_numbers_of_the_cpu(self):
        for path in [*sorted((ROOT / "pipelines").glob("*.toml")), ROOT / "tests/pipelines/ppo_one_trunk.toml"]:
            with self.subTest(pipeline=path.stem):
                self.compare(path)

    # Older versions stay readable, the policy samples on a thread of its own, and the learner goes on meanwhile.
    def test_a_lag_gives_the_numbers_of_the_cpu(self):
        rows = self.compare(ROOT / "pipelines/grpo.toml", **{"schedule.policy_lag": 2, "pipeline.iterations": 5})
        self.assertEqual([row["policy_lag"] for row in rows], [0, 1, 2, 2, 2])

    # Trained, published, and saved merged and alone.
    def test_adapters_give_the_numbers_of_the_cpu(self):
        path = ROOT / "tests/pipelines/ppo_adapters.toml"
        self.compare(path, **{"checkpoint.copy": "none"})  # written from where it lies, by another thread
        models = [self.folder / f"{path.stem}-{place}/checkpoint/actor" for place in ("there", "here")]
        for name in ("model.safetensors", "adapter/adapter_model.safetensors"):
            ours, theirs = (read_safetensors(model / name) for model in models)
            self.assertEqual(sorted(ours), sorted(theirs))
            for tensor, (_, shape, content) in theirs.items():
                self.assertEqual(ours[tensor][1], shape)
                for here, there in zip(array.array("f", ours[tensor][2]), array.array("f", content)):
                    self.assertLessEqual(abs(here - there), 1e-3, tensor)  # AdamW's first steps amplify rounding

    def test_passes_give_the_numbers_of_the_cpu(self):
        self.compare(ROOT / "pipelines/ppo.toml", **{"budget.pass_tokens": 48, "models.actor.activation_checkpointing": "layer"})
        self.compare(ROOT / "pipelines/dpo.toml", **{"budget.pass_tokens": 12})  # a pair has more

    # Each has gradients of its own, which are added up there.
    def test_slots_give_the_numbers_of_the_cpu(self):
        self.compare(ROOT / "pipelines/grpo.toml", **{"cluster.slots": 4})

    # Not only the models lie there: the threads that work for them are called so too.
    def test_executors_of_a_device_give_the_numbers_of_the_cpu(self):
        path = ROOT / "pipelines/ppo.toml"
        on = {"generate": "fake:0", "held_out_answers": "fake:0", "reference": "fake:1", "values": "fake:0", "train": "fake:0"}
        there = self.rows(path, "on-there", **small(path), **devices(path),
                          **{f"nodes.{node}.on": device for node, device in on.items()})
        self.assert_alike(there, self.rows(path, "on-here", **small(path)))

    # Their threads wait for the device most of the time.
    def test_executors_of_a_device_take_no_core(self):
        overrides = {"models.reference.device": "fake:1", "runtime.cores": 1}
        result = run("validate", ROOT / "pipelines/grpo.toml", "--plugin", PLUGIN, *sets(**overrides))
        self.assertIn("2 executors (cpu:1, cpu) cannot share 1 core", result.stderr)

    # Whose plugin nobody has asked for yet.
    def test_a_device_of_a_plugin_that_is_not_loaded_is_no_mistake(self):
        shutil.copy(PLUGIN, self.folder / "fake.so")
        file = self.write("own.toml", f'extends = "{ROOT}/pipelines/grpo.toml"\nplugins = ["fake.so"]\n'
                          'models.actor.device = "fake:0"\nnodes.generate.on = "fake:0"\n')
        result = run("validate", file)
        self.assertEqual(result.returncode, DONE, result.stderr)
        self.assertIn('"fake:0" is no device', result.stderr)
        self.assertIn("no problems", run("validate", file, "--plugins").stdout)

    # Weights go from the device of one process to that of another.
    def test_ranks_apart_give_the_numbers_of_the_cpu(self):
        path = ROOT / "pipelines/grpo.toml"
        apart = self.write("apart.toml", with_roles("grpo.toml", 1, 1))
        there = self.rows(path, "apart", "launch", apart, **small(path), **devices(path))
        self.assert_alike(there, self.rows(path, "together", **small(path)))

    # Gradients are added on the host, and steps are made on the devices of both.
    def test_ranks_that_train_give_the_numbers_of_one(self):
        path = ROOT / "pipelines/ppo.toml"
        for shard in ("none", "optimizer"):
            with self.subTest(shard=shard):
                overrides = (small(path) |
                             {"cluster.slots": 4, "cluster.shard": shard, "models.actor.optimizer.clip_grad_norm": 0.1})
                there = self.rows(path, f"ranks-{shard}", "launch", "--ranks", "2", path, **overrides, **devices(path))
                self.assert_planned_memory(f"ranks-{shard}")
                self.assert_alike(there, self.rows(path, f"one-{shard}", **overrides))

    # Each has some heads of the models, and what they give each other goes over the host. Actor and critic may be on one device.
    def test_ranks_that_share_passes_give_the_numbers_of_one(self):
        path = ROOT / "pipelines/ppo.toml"
        overrides = small(path) | {"cluster.slots": 2}
        here = self.rows(path, "one", **overrides)
        for name, there in (("apart", devices(path)), ("together", dict.fromkeys(devices(path), "fake:0"))):
            with self.subTest(name):
                shared = self.rows(path, name, "launch", "--ranks", "2", path, **overrides, **there,
                                   **{"cluster.sequence_parallel": 2})
                self.assert_planned_memory(name)
                self.assert_alike(shared, here)

    # Flash attention and products of narrow matrices: what training computes is near what was sampled, as on the CPU. Adapters
    # are merged into narrow matrices at each publication.
    def test_bfloat16_trains_what_it_sampled(self):
        adapters = ROOT / "tests/pipelines/ppo_adapters.toml"
        for path, models in ((ROOT / "pipelines/grpo.toml", ("actor", "reference")), (adapters, ("actor", "critic"))):
            with self.subTest(path.stem):
                narrow = {f"models.{model}.dtype": "bfloat16" for model in models}
                for row in self.rows(path, f"narrow-{path.stem}", **small(path), **devices(path), **narrow):
                    self.assertLess(row["policy/logprob_difference_mean"], 0.01)
                    self.assertGreater(row["policy/logprob_difference_mean"], 0)

    # Which token is of which version depends on timing, so there is nothing to compare with.
    def test_samples_go_on_with_the_newest_weights(self):
        path = ROOT / "pipelines/grpo.toml"
        rows = self.rows(path, "newest", **small(path) | devices(path) | {
            "schedule.policy_lag": 1, "schedule.update": "immediately", "pipeline.iterations": 4})
        self.assertEqual(len(rows), 4)

    # As an uninterrupted run has them: what is saved on a device is whole, and what is read is put back there.
    def test_a_run_goes_on_from_what_it_saved(self):
        path = ROOT / "pipelines/grpo.toml"
        settings = small(path) | devices(path) | {"schedule.policy_lag": 1, "checkpoint.every_iterations": 2}
        whole = self.rows(path, "whole", **settings | {"pipeline.iterations": 4})
        self.rows(path, "parts", **settings | {"pipeline.iterations": 2})
        result = run("resume", self.folder / "parts", "--plugin", PLUGIN, *sets(**{"pipeline.iterations": 4}))
        self.assertEqual(result.returncode, DONE, result.stderr)
        parts = [json.loads(line) for line in (self.folder / "parts/metrics.jsonl").read_text().splitlines()]
        # The last iteration of a run measures, which the first part was at an end with.
        training = [[{key: value for key, value in row.items() if not key.startswith("held_out/")} for row in rows]
                    for rows in (parts, whole)]
        self.assert_alike(*training)
        states = [training_state((self.folder / name / "checkpoint").resolve(), "actor") for name in ("parts", "whole")]
        self.assertEqual(sorted(states[0]), sorted(states[1]))
        self.assertGreater(len(states[0]), 0)


if __name__ == "__main__":
    unittest.main(verbosity=2)
