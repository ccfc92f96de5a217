"""validate, plan, graph, nodes and describe: views of one plan and of the registered types."""

import json
import re
import shutil
import subprocess
import unittest

from support import DONE, PPO, ROOT, SMALL, WRONG_PIPELINE, Case, run, sets, skip_or_fail

PIPELINES = sorted((ROOT / "pipelines").glob("*.toml"))
PPO_NODES = ("prompts", "generate", "score", "reference", "values", "rewards", "advantages", "train", "sync",
             "held_out", "held_out_answers", "held_out_score")


def points_of(spline):
    """Points on a spline of Graphviz: `e,x,y` is its end, then x,y: a begin and three for each Bezier curve."""
    ends = [tuple(map(float, part[2:].split(","))) for part in spline.split() if part[0] in "es"]
    at = [tuple(map(float, part.split(","))) for part in spline.split() if part[0] not in "es"]
    points = list(ends)
    for first in range(0, len(at) - 3, 3):
        for step in range(33):
            t = step / 32
            weights = ((1 - t)**3, 3 * t * (1 - t)**2, 3 * t**2 * (1 - t), t**3)
            points.append(tuple(sum(w * p[axis] for w, p in zip(weights, at[first:first + 4])) for axis in (0, 1)))
    return points


def labels_on_edges(graph):
    """(label, edge) for each edge of `dot -Tjson` that runs through the text of a label, or closer than 2 points to it."""
    names = [node["name"] for node in graph["objects"]]
    edges = [(f"{names[edge['tail']]} -> {names[edge['head']]}", points_of(edge["pos"])) for edge in graph["edges"]]
    found = []
    for edge in graph["edges"]:
        lines = [op for op in edge.get("_ldraw_", []) if op["op"] == "T"]
        for line in lines:
            (x, y), width = line["pt"], line["width"]
            left = x - {"l": 0, "c": width / 2, "r": width}[line["align"]]
            found += [(line["text"], name) for name, points in edges
                      if any(left - 2 < px < left + width + 2 and y - 2 < py < y + 7 for px, py in points)]
    return found


class Views(Case):
    def output(self, *words):
        done = run(*words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertEqual(done.stderr, "")
        return done.stdout

    def test_every_pipeline_of_the_repository_is_valid(self):
        self.assertGreaterEqual(len(PIPELINES), 4)
        for pipeline in PIPELINES:
            with self.subTest(pipeline.name):
                self.assertRegex(self.output("validate", pipeline), r"no problems; \d+ of \d+ tokens are needed at worst\n$")

    def test_validate_counts_warnings_and_says_whether_a_run_would_begin(self):
        without = ROOT / "tests/golden/problems/weights-unusable.toml"
        done = run("validate", without)
        self.assertEqual(done.returncode, DONE, done.stderr)
        self.assertRegex(done.stdout,
                         r"no errors, 1 warning, which a run would refuse here; \d+ of \d+ tokens are needed at worst\n$")
        self.assertEqual(run("run", without, "--run-dir", self.folder / "refused").returncode, WRONG_PIPELINE)

    def test_plan_names_every_node_with_its_type_and_executor(self):
        lines = self.output("plan", PPO, *sets(**SMALL)).splitlines()
        for node, kind in zip(PPO_NODES,
                              ("jsonl_prompts", "generate", "exact_match", "logprobs", "values", "token_rewards", "gae",
                               "train_ppo", "sync_weights", "jsonl_prompts", "generate", "exact_match")):
            self.assertTrue(any(re.match(rf"  {node} +{kind} +cpu(:1)? ", line) for line in lines), node)
        text = "\n".join(lines)
        self.assertIn("ppo: 2 iterations of 16 prompts x 4 samples, at most 14 tokens a sample; policy lag 0", text)
        self.assertIn("no deadlock: 896 of 8192 tokens are needed at worst", text)  # 16 x 4 x 14

    def test_roles_have_ranks_and_what_goes_between_them(self):
        behind = ({node: "train" for node in PPO_NODES if node not in ("prompts", "held_out")} |
                  {"generate": "rollout", "held_out_answers": "rollout"})
        roles = {"cluster.roles.rollout.ranks": 2, "cluster.roles.train.ranks": 1,
                 **{f"nodes.{node}.on": role for node, role in behind.items()}}
        self.assertIn("; role train has rank 0, rollout 1-2\n", self.output("validate", PPO, *sets(**SMALL | roles)))
        text = self.output("plan", PPO, *sets(**SMALL | roles))
        self.assertRegex(text, r"\n  roles        train    rank  0    \d+ tokens in flight; 1 slot each; ")
        self.assertRegex(text, r"\n  network      weights of actor: [\d.]+ .B a version to each rank of rollout\n")
        self.assertRegex(text, r"\n  memory       train    weights .* optimizer .*\n               rollout  weights ")
        self.assertIn('subgraph "cluster_rollout"', self.output("graph", PPO, *sets(**SMALL | roles)))

    def test_plan_follows_an_override(self):
        self.assertIn("of 32 prompts x 2 samples, at most 18 tokens a sample", self.output("plan", PPO, *sets(**{
            **SMALL, "nodes.prompts.groups_per_iteration": 32, "nodes.generate.samples_per_prompt": 2,
            "nodes.generate.max_new_tokens": 10})))

    def test_plan_as_json_has_nodes_capacity_and_prediction(self):
        plan = json.loads(self.output("plan", PPO, "--format", "json", *sets(**SMALL)))
        self.assertEqual([node["name"] for node in plan["nodes"]], list(PPO_NODES))
        self.assertEqual(plan["capacity"]["tokens_needed"], 896)
        self.assertGreater(min(value for value in plan["predicted"].values()), 0)

    def test_the_effective_pipeline_is_a_pipeline_with_the_same_plan(self):
        for pipeline in PIPELINES:
            with self.subTest(pipeline.name):
                effective = self.write("effective.toml", self.output("plan", pipeline, "--config"))
                self.assertEqual(self.output("plan", effective, "--format", "json"),
                                 self.output("plan", pipeline, "--format", "json"))

    def test_the_effective_pipeline_says_where_each_value_comes_from(self):
        text = self.output("plan", PPO, "--config", "--set", "pipeline.seed=7")
        self.assertRegex(text, r"(?m)^seed = 7 +# --set$")
        self.assertRegex(text, r"(?m)^shuffle = true +# default$")
        self.assertRegex(text, r'(?m)^name = "ppo" +# .*ppo\.toml:\d+$')

    def test_graphviz_draws_the_graph(self):
        dot = shutil.which("dot")
        if dot is None:
            skip_or_fail("Graphviz is not installed: the graph is not drawn")
        for pipeline in PIPELINES:
            with self.subTest(pipeline.name):
                text = self.output("graph", pipeline)
                drawn = subprocess.run([dot, "-Tsvg"], input=text, capture_output=True, text=True)
                self.assertEqual((drawn.returncode, drawn.stderr), (0, ""), text)
                self.assertIn("</svg>", drawn.stdout)
        for node in PPO_NODES:
            self.assertIn(node, self.output("graph", PPO))

    def test_an_edge_has_the_columns_that_its_end_reads_or_all(self):
        read, every = self.output("graph", PPO), self.output("graph", PPO, "--columns", "all")
        edge = lambda text, ends: re.search(rf'"{ends[0]}" -> "{ends[1]}"(.*)', text).group(1)
        self.assertIn("tokens", edge(every, ("score", "rewards")))
        self.assertNotIn("tokens", edge(read, ("score", "rewards")))
        self.assertRegex(edge(read, ("score", "rewards")), r"\bscore\b")
        plan = json.loads(self.output("plan", PPO, "--format", "json"))
        for node in plan["nodes"]:
            into = " ".join(re.findall(rf'-> "{node["name"]}" \[label=(.*)', read))
            for column in node["reads"]:
                self.assertEqual(len(re.findall(rf"\b{column}\b", into)), 1, (node["name"], column))

    def test_labels_stand_clear_of_edges(self):
        if not shutil.which("dot"):
            skip_or_fail("Graphviz is not installed")
        for pipeline in (PPO, ROOT / "pipelines/online_dpo.toml", ROOT / "pipelines/distill.toml"):
            drawn = subprocess.run(["dot", "-Tjson"], input=self.output("graph", pipeline), capture_output=True, text=True,
                                   check=True)
            self.assertEqual(labels_on_edges(json.loads(drawn.stdout)), [], pipeline.name)

    def test_mermaid_has_every_node_and_edge(self):
        text = self.output("graph", PPO, "--format", "mermaid")
        self.assertRegex(text, r"^(flowchart|graph) (LR|TD|TB)\n")
        for node in PPO_NODES:
            self.assertIn(node, text)
        self.assertGreaterEqual(len(re.findall(r"--+>|-\.+->|==+>", text)), 10)


class Types(Case):
    def listed(self):
        done = run("nodes")
        self.assertEqual(done.returncode, DONE, done.stderr)
        return [line.split()[0] for line in done.stdout.splitlines() if line]

    def test_nodes_lists_what_the_tree_registers(self):
        source = (ROOT / "nodes/builtin.cpp").read_text()
        listed = self.listed()
        types = [name for name in listed if not name.startswith(("preset:", "table:"))]
        self.assertEqual(len(types), len(re.findall(r"registry\.add(?:_component)?<", source)))
        for name in ("jsonl_prompts", "generate", "gae", "train_ppo", "objective:ppo_clip", "value_objective:value_clip",
                     "preset:verl", "table:budget", "table:optimizer"):
            self.assertIn(name, listed)

    def test_each_listed_type_is_described(self):
        """Some of each kind, by turns: one function writes them all, and docs/nodes.md, which has all, is held by a test of its
        own."""
        kinds = {}
        for name in self.listed():
            kinds.setdefault(name.partition(":")[0] if ":" in name else "", []).append(name)
        self.assertGreaterEqual(len(kinds), 5)
        for name in (name for of_kind in kinds.values() for name in of_kind[::5]):
            with self.subTest(name):
                done = run("describe", name)
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertTrue(done.stdout.startswith(name.split(":")[-1] + ": "), done.stdout)
                self.assertIn("  kind ", done.stdout)

    def test_an_objective_has_the_name_that_try_gives_it(self):
        for name in ("objective:ppo_clip", "objective:value_clip", "value_clip"):
            self.assertEqual(run("describe", name).returncode, DONE, name)

    def test_tables_are_described_as_pipelines_have_them(self):
        for name, heading, keys in (
            ("budget", "budget", ("tokens_in_flight", "micro_batch_tokens")), ("[schedule]", "schedule", ("policy_lag",)),
            ("model", "models.actor", ("checkpoint", "optimizer")), ("lora", "models.actor.lora", ("rank", "alpha")),
            ("optimizer", "models.actor.optimizer", ("learning_rate", "clip_grad_norm"))):
            with self.subTest(name):
                done = run("describe", name)
                self.assertEqual(done.returncode, DONE, done.stderr)
                self.assertIn(f"\n  [{heading}]\n", done.stdout)
                for key in keys:
                    self.assertRegex(done.stdout, rf"(?m)^    {key} +\S")
                    self.assertRegex(done.stdout, rf"(?m)^  (# )?{key} = ")
        self.assert_refused(run("describe", "optimiser"), "did you mean optimizer?")

    def test_nodes_as_json_has_what_describe_says(self):
        done = run("nodes", "--format", "json")
        self.assertEqual(done.returncode, DONE, done.stderr)
        known = json.loads(done.stdout)
        names = ([node["type"] for node in known["nodes"]] + [f"{c['kind']}:{c['type']}" for c in known["components"]] +
                 ["preset:" + preset["name"] for preset in known["presets"]] +
                 ["table:" + table["name"] for table in known["tables"]])
        self.assertEqual(sorted(names), sorted(self.listed()))
        gae = next(node for node in known["nodes"] if node["type"] == "gae")
        self.assertEqual([column["name"] for column in gae["writes"]], ["advantages", "returns"])
        discount = next(parameter for parameter in gae["parameters"] if parameter["name"] == "discount")
        self.assertEqual({key: discount[key] for key in ("kind", "default", "minimum", "maximum", "required")},
                         {"kind": "real", "default": "1.0", "minimum": 0, "maximum": 1, "required": False})
        optimizer = next(table for table in known["tables"] if table["name"] == "optimizer")
        self.assertTrue(next(p for p in optimizer["parameters"] if p["name"] == "learning_rate")["required"])

    def test_unknown_type(self):
        self.assert_refused(run("describe", "gea"), '"gea"', "did you mean gae?")
        self.assert_refused(run("describe", "zzzzzzzz"), "rlhf-run nodes lists all; --plugin FILE adds those of a plugin")

    def test_missing_plugin(self):
        self.assert_refused(run("nodes", "--plugin", self.folder / "none.so"), "none.so")

    def test_the_example_of_a_description_names_only_real_parameters(self):
        text = run("describe", "gae").stdout
        names = re.findall(r"(?m)^  # (\w+) = ", text)
        self.assertEqual(names,
                         ["discount", "lambda", "masked_actions", "whiten", "whiten_variance", "whiten_epsilon", "whiten_mean"])
        done = run("try", "gae",
                   *[word for line in re.findall(r"(?m)^  # (\w+ = \S+)", text) for word in ("--set", line.replace(" ", ""))],
                   stdin='{"columns": {"token_rewards": [[1]], "values": [[0]]}}')
        self.assertEqual(done.returncode, DONE, done.stderr)


if __name__ == "__main__":
    unittest.main()
