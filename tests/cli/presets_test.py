"""Presets: what each one sets, the conventions of four systems as formulas, and the table of docs/conventions.md."""

import json
import re
import tomllib
import unittest

import formulas
from formulas import SYSTEMS
from support import DONE, MODEL, ROOT, Case, run

PIPELINE = f"""
[pipeline]
name = "conventions"
iterations = 3

[budget]
tokens_in_flight = 65536
micro_batch_tokens = 512

[runtime]
memory_gib = 1024

[models.actor]
checkpoint = "{MODEL}"
optimizer = {{ learning_rate = 1e-4 }}

[models.reference]
checkpoint = "{MODEL}"

[models.critic]
checkpoint = "{MODEL}"
head = "value"
optimizer = {{ learning_rate = 1e-3 }}

[nodes.prompts]
type = "jsonl_prompts"
path = "{ROOT}/pipelines/data/arithmetic_train.jsonl"
groups_per_iteration = 16

[nodes.generate]
type = "generate"
inputs = ["prompts"]
model = "actor"
samples_per_prompt = 4
max_prompt_tokens = 8
max_new_tokens = 6

[nodes.score]
type = "exact_match"
inputs = ["generate"]

[nodes.useful]
type = "filter_groups"
inputs = ["score"]

[nodes.reference]
type = "logprobs"
inputs = ["useful"]
model = "reference"

[nodes.values]
type = "values"
inputs = ["useful"]
model = "critic"

[nodes.rewards]
type = "token_rewards"
inputs = ["reference"]

[nodes.advantages]
type = "gae"
inputs = ["rewards", "values"]

[nodes.train]
type = "train_ppo"
inputs = ["advantages"]
actor = "actor"
critic = "critic"

[nodes.sync]
type = "sync_weights"
inputs = ["train"]
model = "actor"
"""

# Values that `plan --config` must show, by hand from docs/conventions.md. A path is table, key, and key within a component or
# table.
GOLDEN = {
    "nodes.advantages.discount": (1.0, 1.0, 1.0, 1.0),
    "nodes.advantages.lambda": (1.0, 1.0, 0.95, 0.95),
    "nodes.advantages.whiten": ("iteration",) * 4,
    "nodes.rewards.kl_coefficient": (0.01, 0.0, 0.05, 0.0),
    "nodes.rewards.kl_estimator": ("k1", "k1", "k1", "k3"),
    "nodes.train.objective.clip_low": (0.2,) * 4,
    "nodes.train.objective.clip_high": (0.2,) * 4,
    "nodes.train.objective.dual_clip": (0.0, 3.0, 0.0, 0.0),
    "nodes.train.value_objective.clip": (0.5, 0.5, 0.2, 0.2),
    "nodes.useful.drop_equal_scores": (True,) * 4,
    "nodes.useful.most_draws": (1, 1, 1, 10),
    "models.actor.optimizer.schedule": ("cosine", "constant", "linear", "constant"),
    "models.actor.optimizer.warmup": (0.03, 0.0, 0.0, 0.0),
    "models.critic.optimizer.minimum": (0.1, 0.0, 0.0, 0.0),
    "models.actor.optimizer.beta1": (0.9,) * 4,
    "models.actor.optimizer.beta2": (0.95, 0.999, 0.999, 0.999),
    "models.actor.optimizer.epsilon": (1e-8,) * 4,
    "models.actor.optimizer.weight_decay": (0.0, 0.01, 0.0, 0.01),
    "models.actor.optimizer.clip_grad_norm": (1.0,) * 4,
    "models.critic.optimizer.beta2": (0.95, 0.999, 0.999, 0.999),
}


class PresetCase(Case):
    def output(self, *words, stdin=""):
        done = run(*words, stdin=stdin)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return done.stdout

    def try_one(self, what, columns, preset, groups=None, **parameters):
        given = {"columns": columns} if groups is None else {"groups": groups, "columns": columns}
        sets = [word for key, value in parameters.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        return json.loads(self.output("try", what, "--preset", preset, *sets, stdin=json.dumps(given)))

    def assert_near(self, got, expected, tolerance=1e-5):
        if isinstance(expected, list):
            self.assertEqual(len(got), len(expected), f"{got} and {expected}")
            for a, b in zip(got, expected):
                self.assert_near(a, b, tolerance)
        else:
            self.assertLessEqual(abs(got - expected), tolerance * max(1, abs(expected)), f"{got} and {expected}")


def at(tree, path):
    for key in path.split("."):
        tree = tree[key]
    return tree


class WhatPresetsSet(PresetCase):
    def pipeline(self, preset, edit=lambda text: text):
        return self.write(f"{preset}.toml", edit(PIPELINE.replace("iterations = 3", f'iterations = 3\npreset = "{preset}"')))

    def test_the_effective_pipeline_has_the_conventions_of_each_system(self):
        for index, system in enumerate(SYSTEMS):
            effective = tomllib.loads(self.output("plan", self.pipeline(system), "--config"))
            for path, values in GOLDEN.items():
                with self.subTest(system, path=path):
                    self.assertEqual(at(effective, path), values[index])

    def test_the_effective_pipeline_says_what_came_from_the_preset(self):
        text = self.output("plan", self.pipeline("verl"), "--config")
        self.assertRegex(text, r"(?m)^lambda = 1\.0 +# preset verl$")
        self.assertRegex(text, r"(?m)^objective = .*# default; preset verl: clip_low, clip_high, dual_clip")
        self.assertRegex(text, r"(?m)^optimizer = .*# .*verl\.toml:\d+; preset verl: schedule, warmup, beta1, beta2, epsilon")

    def test_the_effective_pipeline_is_a_pipeline_with_the_same_plan(self):
        for system in SYSTEMS:
            with self.subTest(system):
                pipeline = self.pipeline(system)
                effective = self.write("effective.toml", self.output("plan", pipeline, "--config"))
                self.assertEqual(self.output("plan", effective, "--format", "json"),
                                 self.output("plan", pipeline, "--format", "json"))
                self.assertEqual(tomllib.loads(self.output("plan", effective, "--config")),
                                 tomllib.loads(self.output("plan", pipeline, "--config")))

    def test_what_a_preset_sets_and_the_file_makes_mean_nothing_is_no_contradiction(self):
        constant = self.pipeline("openrlhf",
                                 lambda text: text.replace("learning_rate = 1e-4", 'learning_rate = 1e-4, schedule = "constant"'))
        text = self.output("plan", constant, "--config")
        self.assertEqual(at(tomllib.loads(text), "models.actor.optimizer.minimum"), 0.0)
        self.assertEqual(at(tomllib.loads(text), "models.critic.optimizer.minimum"), 0.1)
        self.output("validate", self.write("effective.toml", text))

    def test_the_plan_names_the_preset(self):
        self.assertIn("; preset trl", self.output("plan", self.pipeline("trl")).splitlines()[0])
        self.assertNotIn("preset", self.output("plan", self.write("none.toml", PIPELINE)))

    def test_a_key_of_the_file_or_of_the_command_line_wins(self):
        pipeline = self.pipeline("verl", lambda text: text.replace('type = "gae"', 'type = "gae"\nlambda = 0.9'))
        effective = tomllib.loads(self.output("plan", pipeline, "--config", "--set", "nodes.advantages.discount=0.99",
                                              "--set", "nodes.train.objective.dual_clip=5.0", "--set",
                                              "nodes.train.objective.type=ppo_clip"))
        self.assertEqual((effective["nodes"]["advantages"]["lambda"], effective["nodes"]["advantages"]["discount"]), (0.9, 0.99))
        self.assertEqual(effective["nodes"]["train"]["objective"]["dual_clip"], 5.0)

    def test_a_preset_is_inherited_and_can_be_replaced(self):
        self.pipeline("verl")
        layer = self.write("layer.toml", 'extends = "verl.toml"\n')
        self.assertIn("; preset verl", self.output("plan", layer))
        self.assertIn("; preset trl", self.output("plan", layer, "--set", "pipeline.preset=trl"))
        other = self.write("other.toml", 'extends = "verl.toml"\n[pipeline]\npreset = "openrlhf"\n')
        self.assertIn("; preset openrlhf", self.output("plan", other))

    def test_an_unknown_preset_is_refused_with_what_was_meant(self):
        self.assert_refused(run("validate", self.pipeline("vrel")), 'there is no preset "vrel"', 'did you mean "verl"?',
                            'known: "nemo_rl", "openrlhf", "trl", "verl"', problems=1)

    def test_a_preset_without_effect_is_refused(self):
        self.assert_refused(run("validate", ROOT / "pipelines/evaluate.toml", "--set", "pipeline.preset=verl"),
                            'preset "verl" has no effect', problems=1)

    def test_presets_are_listed_and_described_with_their_sources(self):
        listed = self.output("nodes")
        for system in SYSTEMS:
            self.assertIn(f"preset:{system} ", listed)
            described = self.output("describe", f"preset:{system}")
            self.assertRegex(described, r"objective:ppo_clip\.clip_low = 0\.2 +\S")
        self.assert_refused(run("describe", "preset:vrel"), "did you mean preset:verl?", problems=1)

    def test_try_refuses_a_preset_that_has_no_value_for_the_type(self):
        self.assert_refused(run("try", "exact_match", "--preset", "verl", stdin="{}"),
                            'preset "verl" has no value for exact_match', problems=1)
        self.assert_refused(run("try", "gae", "--preset", "vrel", stdin="{}"), 'did you mean "verl"?', problems=1)


class Table(PresetCase):
    """The table "What the presets set" of docs/conventions.md is that of the program."""

    ROW = re.compile(r"^\| `(?P<of>[a-z_:*.]+)\.(?P<key>[a-z_]+[0-9]?)` \|(?P<cells>.*)\|$", re.M)

    def rows(self):
        text = (ROOT / "docs/conventions.md").read_text()
        text = text[text.index("## What the presets set"):text.index("## Policy loss")]
        for row in self.ROW.finditer(text):
            cells = [(re.findall(r"`([^`]*)`", cell) or [""])[0] for cell in row["cells"].split("|")]
            self.assertEqual(len(cells), 1 + len(SYSTEMS), row[0])
            yield row["of"], row["key"], [tomllib.loads(f"x = {cell}")["x"] if cell else None for cell in cells]

    def defaults(self):
        """(of, key) -> default of every key of the program, as its reference has them."""
        found, of, kind = {}, None, ""
        for line in self.output("nodes", "--format", "markdown").splitlines():
            if line.startswith("## "):
                kind = (re.findall(r"of kind `(\w+)`", line) or [""])[0]
            elif line.startswith("### "):
                of = (kind + ":" if kind else "") + line[4:]
            elif row := re.match(r"\| `(\w+)` \| [^|]* \| `?([^|`]*)`? \|", line.replace("\\|", "/")):
                found[of, row[1]] = row[2]
        return found

    def presets(self):
        found = {}
        for system in SYSTEMS:
            for line in self.output("describe", f"preset:{system}").splitlines():
                if row := re.match(r"    ([a-z0-9_:.]+)\.(\w+) = (\"[^\"]*\"|\[[^]]*\]|\S+)  ", line):
                    found[system, row[1], row[2]] = tomllib.loads(f"x = {row[3]}")["x"]
        return found

    def test_every_value_is_that_of_the_preset(self):
        defaults, presets, documented = self.defaults(), self.presets(), {}
        for of, key, cells in self.rows():
            known = {owner for owner, name in defaults if name == key and
                     (owner == of or of == "objective:*" and owner.startswith("objective:"))}
            if of.startswith("model."):
                known = {of}
            for owner in known:
                if not of.startswith("model."):
                    with self.subTest("default", of=owner, key=key):
                        default = defaults[owner, key]
                        self.assertEqual(None if default == "not set" else tomllib.loads(f"x = {default}")["x"], cells[0])
                for system, value in zip(SYSTEMS, cells[1:]):
                    if value is not None:
                        documented[system, owner, key] = value
        missing = sorted(f"{system}: {of}.{key} = {value}" for (system, of, key), value in documented.items()
                         if presets.get((system, of, key)) != value)
        self.assertEqual(missing, [], "documented, but not what the preset sets")
        self.assertEqual(sorted(map(str, set(presets) - set(documented))), [], "set, but not documented")


REWARDS = [[0.5, -0.25, 1.0], [2.0], [0.0, 0.75]]
VALUES = [[0.25, 0.5, -0.5], [1.0], [0.5, 0.125]]
LOGPROBS = [[-0.9, -1.6, -0.2], [-2.0], [-0.1, -2.5]]
OLD = [[-1.0, -1.0, -1.5], [-0.4], [-0.1, -2.0]]
REFERENCES = [[-1.2, -0.5, -0.9], [-2.25], [-1.1, -0.75]]
ADVANTAGES = [[1.5, -0.5, 0.25], [-2.0], [0.75, -1.0]]


class Formulas(PresetCase):
    """`try --preset` against transcriptions of the systems' formulas."""

    def test_returns_of_gae(self):
        for system in SYSTEMS:
            with self.subTest(system):
                out = self.try_one("gae", {"token_rewards": REWARDS, "values": VALUES}, system, groups=[2, 1])
                self.assert_near(out["columns"]["returns"], formulas.gae(system, REWARDS, VALUES)[1])

    def test_whitened_advantages_of_gae(self):
        for system in ("verl", "trl", "nemo_rl"):
            with self.subTest(system):
                out = self.try_one("gae", {"token_rewards": REWARDS, "values": VALUES}, system, groups=[2, 1])
                self.assert_near(out["columns"]["advantages"], formulas.whiten(system, formulas.gae(system, REWARDS, VALUES)[0]))

    def test_rewards_with_the_penalty_of_each_system(self):
        columns = {"score": [1.0, -2.0, 0.5], "rollout_logprobs": LOGPROBS, "reference_logprobs": REFERENCES}
        for system in SYSTEMS:
            with self.subTest(system):
                self.assert_near(self.try_one("token_rewards", columns, system)["columns"]["token_rewards"],
                                 formulas.token_rewards(system, columns["score"], LOGPROBS, REFERENCES))

    def test_estimator_of_the_penalty_where_it_is_switched_on(self):
        columns = {"score": [0.0] * 3, "rollout_logprobs": LOGPROBS, "reference_logprobs": REFERENCES}
        for system in SYSTEMS:
            with self.subTest(system):
                self.assert_near(self.try_one("token_rewards", columns, system, kl_coefficient=0.3)["columns"]["token_rewards"],
                                 formulas.token_rewards(system, columns["score"], LOGPROBS, REFERENCES, coefficient=0.3))

    def test_policy_loss(self):
        # The sixth action has a ratio of e^1.3 > 3 at an advantage below 0: a dual clip of 3 bounds its loss.
        logprobs = LOGPROBS[:2] + [[-0.1, -0.7]]
        columns = {"logprobs": logprobs, "old_logprobs": OLD, "advantages": ADVANTAGES}
        for system in SYSTEMS:
            with self.subTest(system):
                expected = formulas.token_mean(system, formulas.policy_losses(system, logprobs, OLD, ADVANTAGES))
                out = self.try_one("objective:ppo_clip", {**columns, "reference_logprobs": logprobs}, system)
                self.assert_near(out["loss"], expected)
        losses = {system: formulas.token_mean(system, formulas.policy_losses(system, logprobs, OLD, ADVANTAGES))
                  for system in SYSTEMS}
        self.assertNotAlmostEqual(losses["verl"], losses["trl"])

    def test_value_loss(self):
        old = [[0.0, 0.5, 0.25], [0.375], [0.5, 1.5]]
        returns = [[1.0, 0.5, -2.0], [3.0], [0.25, 0.0]]
        losses = set()
        for system in SYSTEMS:
            with self.subTest(system):
                losses.add(formulas.value_loss(system, VALUES, old, returns))
                out = self.try_one("value_objective:value_clip", {"values": VALUES, "old_values": old, "returns": returns},
                                   system)
                self.assert_near(out["loss"], formulas.value_loss(system, VALUES, old, returns))
        self.assertEqual(len(losses), 2)  # the clips differ, and it shows


if __name__ == "__main__":
    unittest.main()
