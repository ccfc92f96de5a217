"""`rlhf-run schema`: the JSON Schema of pipeline files, read by the node that checks responses against schemas.

tests/oracles/pipeline_schema.py has taplo read it.
"""

import json
import os
import pathlib
import tomllib
import unittest

from pipeline_mutants import MUTANTS, mutant
from support import DONE, ROOT, Case, run

SCHEMA = ROOT / "docs/pipeline.schema.json"
PLUGINS = pathlib.Path(os.environ.get("SLUICE_TEST_PLUGINS", ROOT / "build/release/tests/plugins"))


def accepted(schema, pipelines):
    """Of each text, whether it is a pipeline by the schema."""
    texts = [json.dumps(tomllib.loads(text)) for text in pipelines]
    done = run("try", "json_schema", "--set", f"schema={schema}", stdin=json.dumps({"columns": {"response": texts}}))
    assert done.returncode == DONE, done.stderr
    return [score == 1 for score in json.loads(done.stdout)["columns"]["score"]]


class Schema(Case):
    def schema(self, *words):
        done = run("schema", *words)
        self.assertEqual(done.returncode, DONE, done.stderr)
        return json.loads(done.stdout)

    def test_the_one_in_docs_is_the_one_that_is_printed(self):
        printed = run("schema").stdout
        if os.environ.get("SLUICE_UPDATE_GOLDEN") == "1":
            SCHEMA.write_text(printed)
        self.assertEqual(printed, SCHEMA.read_text(), "rlhf-run schema -o docs/pipeline.schema.json")

    def test_a_file_gets_the_same(self):
        path = self.folder / "s.json"
        self.assertEqual(run("schema", "-o", path).stdout, "")
        self.assertEqual(path.read_text(), SCHEMA.read_text())

    def test_a_file_that_cannot_be_written_is_named(self):
        done = run("schema", "--output", self.folder / "none/s.json")
        self.assert_refused(done, f"{self.folder}/none/s.json")

    def test_our_pipelines_are_accepted(self):
        files = sorted([*ROOT.glob("pipelines/**/*.toml"), *ROOT.glob("examples/*/*.toml"), *ROOT.glob("tests/pipelines/*.toml")])
        refused = [file for file, good in zip(files, accepted(SCHEMA, [file.read_text() for file in files])) if not good]
        self.assertEqual(refused, [])

    def test_mistakes_are_refused(self):
        good = accepted(SCHEMA, [mutant(name, there, instead) for _, name, there, instead, _ in MUTANTS])
        self.assertEqual([what for (what, *_), is_good in zip(MUTANTS, good) if is_good], [])

    def test_everything_that_a_contract_says_is_in_it(self):
        reference, definitions = json.loads(run("nodes", "--format", "json").stdout), self.schema()["definitions"]
        seen = 0
        for prefix, types in (("node.", reference["nodes"]), (None, reference["components"])):
            for kind in types:
                properties = definitions[(prefix or kind["kind"] + ".") + kind["type"]]["properties"]
                for parameter in kind["parameters"]:
                    schema = properties[parameter["name"]]
                    self.assertTrue(schema.get("description", "").startswith(parameter["doc"]), parameter)
                    numbers = schema.get("items", schema)
                    self.assertEqual(numbers.get("minimum", numbers.get("exclusiveMinimum")), parameter.get("minimum"))
                    self.assertEqual(numbers.get("maximum"), parameter.get("maximum"))
                    self.assertEqual(schema.get("enum"), parameter.get("choices"))
                    self.assertEqual("default" in schema, parameter["default"] is not None, parameter)
                    if "default" in schema:
                        self.assertEqual(schema["default"], tomllib.loads(f"value = {parameter['default']}")["value"])
                    seen += 1
        self.assertGreater(seen, 200)

    def test_types_of_a_plugin_that_is_given_are_known(self):
        pipeline = "extends = 'ppo.toml'\n[nodes.n]\ntype = '%s'\n"
        self.assertEqual(accepted(SCHEMA, [pipeline % "numbers"]), [False])
        with_plugin = self.schema("--plugin", PLUGINS / "libodd_nodes.so")
        self.write("s.json", json.dumps(with_plugin))
        added = with_plugin["definitions"].keys() - self.schema()["definitions"].keys()
        types = [name.removeprefix("node.") for name in added if name.startswith("node.")]
        self.assertTrue(types)
        self.assertEqual(accepted(self.folder / "s.json", [pipeline % name for name in types]), [True] * len(types))

    def test_a_file_that_names_plugins_may_have_types_that_are_not_known(self):
        pipeline = ("%s[pipeline]\niterations = 1\n[budget]\ntokens_in_flight = 8\nmicro_batch_tokens = 8\n[nodes.n]\n"
                    "type = 'brevity'\ninputs = ['m']\nword = 3\n")
        self.assertEqual(accepted(SCHEMA, [pipeline % "plugins = ['libx.so']\n", pipeline % ""]), [True, False])


if __name__ == "__main__":
    unittest.main()
