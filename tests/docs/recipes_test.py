"""Each recipe of pipelines/recipes/: valid for a model of its shape, with the memory that its head and docs/recipes.md say.

A head has lines of a name and a text. What plan says of the machine that the head names is written into heads and page with
SLUICE_UPDATE_GOLDEN=1.
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import tempfile
import tomllib
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
DATA = pathlib.Path(os.environ.get("SLUICE_TEST_DATA", ROOT.parent / "shared/data"))
RECIPES = sorted((ROOT / "pipelines/recipes").glob("*.toml"))
PAGE = ROOT / "docs/recipes.md"
UPDATE = os.environ.get("SLUICE_UPDATE_GOLDEN") == "1"
CORES = itertools.cycle(sorted(os.sched_getaffinity(0)))
HEAD = re.compile(r"(?m)^#   (\w+) +(.*)$")
NAMES = ["machine", "model", "data", "plan", "memory", "start", "tried"]

# As the Hub tells them of the weights: the shapes of tests/docs/models/ are those of the models.
PARAMETERS = {"qwen2.5-0.5b": 494032768, "qwen2.5-1.5b": 1543714304, "qwen2.5-7b": 7615616512, "llama-3.2-1b": 1235814400,
              "qwen3-4b": 4022468096}

TEMPLATES = {"qwen2.5": "Qwen-Qwen2.5-7B-Instruct.jinja", "qwen3": "Qwen-Qwen3-0.6B.jinja"}

# One row in the form of each data set.
QUESTION = {"role": "user", "content": "What is 1 + 1?"}
RIGHT, WRONG = {"role": "assistant", "content": "2."}, {"role": "assistant", "content": "3, I think."}
ROWS = {
    "gsm8k": {"question": "What is 1 + 1?", "answer": "One and one is two.\n#### 2"},
    "dapo": {"data_source": "math_dapo", "prompt": [QUESTION],
             "reward_model": {"ground_truth": "2", "style": "rule-lighteval/MATH_v2"}},
    "dpo": {"prompt": "What is 1 + 1?", "chosen": [QUESTION, RIGHT], "rejected": [QUESTION, WRONG]},
    "sft": {"prompt": "What is 1 + 1?", "messages": [QUESTION, WRONG, {"role": "user", "content": "Sure?"}, RIGHT]},
}


def shape_of(checkpoint):
    return checkpoint.partition("/")[2].lower().removesuffix("-instruct")


def make_model(folder, shape):
    """Without weights, and with a tokenizer that has a chat template: the published one where it is at hand."""
    shutil.copytree(ROOT / "pipelines/models/tiny-text", folder, ignore=shutil.ignore_patterns("*.safetensors", "config.json"))
    shutil.copy(ROOT / f"tests/docs/models/{shape}.json", folder / "config.json")
    for family, template in TEMPLATES.items():
        if shape.startswith(family) and (DATA / "chat_templates").exists():
            shutil.copy(DATA / "chat_templates" / template, folder / "chat_template.jinja")
    return folder


class Recipe:
    def __init__(self, file):
        self.name, self.text = file.stem, file.read_text()
        self.head = dict(HEAD.findall(self.text))
        self.tables = tomllib.loads(self.text)

    def checkpoints(self):
        return sorted({model["checkpoint"] for model in self.tables["models"].values() if "checkpoint" in model})

    def sources(self):
        return [name for name, node in self.tables["nodes"].items() if "path" in node]

    def make_world(self, folder):
        """A copy of the recipe, its models without weights and rows of its data; what must be set to read these rows."""
        shutil.copy(ROOT / f"pipelines/recipes/{self.name}.toml", folder)
        for checkpoint in self.checkpoints():
            make_model(folder / checkpoint, shape_of(checkpoint))
        row = next(row for word, row in ROWS.items() if word in self.name)
        (folder / "rows.jsonl").write_text((json.dumps(row) + "\n") * 4)
        return [word for name in self.sources() for word in ("--set", f"nodes.{name}.path=rows.jsonl")]

    def table_row(self):
        return (f"| [{self.name}](../pipelines/recipes/{self.name}.toml) | {self.head['machine']} | {self.head['memory']} | "
                f"{self.head['tried']} |")


def memory_said(text):
    """Of what plan prints: "at most 18.3 GB of 25.8 GB", or of each place where there are several."""
    peaks = re.findall(r"(?m)^ .*?(?:(host|cuda:\d+) +)?weights .* peak (\S+ \wB of \S+ GB)", text)
    return ", ".join(sorted(f"{place} at most {peak}".strip() for place, peak in peaks))


def run_in(folder, *words):
    """On one core: each one more takes a few MB."""
    on_a_core = ["taskset", "--cpu-list", str(next(CORES))]
    return subprocess.run([*on_a_core, PROGRAM, *words], cwd=folder, capture_output=True, text=True, timeout=120)


def try_one(file):
    """(recipe, what is wrong with it, memory that plan says)."""
    recipe = Recipe(file)
    with tempfile.TemporaryDirectory(prefix="sluice-recipe-") as folder:
        paths = recipe.make_world(pathlib.Path(folder))
        _, plan, *arguments = shlex.split(recipe.head["plan"])
        valid, planned = (run_in(folder, word, *arguments, *paths) for word in ("validate", plan))
    failed = "".join(done.stderr for done in (valid, planned) if done.returncode != 0)
    expected = ("is on cuda:0", "holds neither model.safetensors nor")  # of the machine and of this copy
    warnings = [line for line in valid.stderr.splitlines() if ": warning: " in line and
                not any(text in line for text in expected)]
    return recipe, failed + "\n".join(warnings), memory_said(planned.stdout)


def each(function, items):
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        return list(pool.map(function, items))


class Recipes(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.tried = each(try_one, RECIPES)
        if UPDATE:
            for recipe, _, memory in cls.tried:
                text = re.sub(r"(?m)^(#   memory   ).*", lambda line: line[1] + memory, recipe.text)
                (ROOT / f"pipelines/recipes/{recipe.name}.toml").write_text(text)
                recipe.head["memory"] = memory
            rows = "\n".join(recipe.table_row() for recipe, *_ in cls.tried)
            PAGE.write_text(re.sub(r"(?m)(?:^\| \[.*\]\(\.\./pipelines/recipes/.*\n)+", rows + "\n", PAGE.read_text()))

    def test_are_valid_and_planned_for_their_machine_without_a_warning(self):
        self.assertGreater(len(RECIPES), 10)
        for recipe, wrong, _ in self.tried:
            self.assertEqual(wrong, "", recipe.name)

    def test_take_the_memory_that_their_head_says(self):
        for recipe, _, memory in self.tried:
            self.assertEqual(recipe.head["memory"], memory, recipe.name)

    def test_the_models_that_they_name_have_a_shape(self):
        shapes = {shape_of(checkpoint) for recipe, *_ in self.tried for checkpoint in recipe.checkpoints()}
        self.assertEqual(shapes, set(PARAMETERS))

    def test_their_heads_say_all_that_there_is_to_know(self):
        for recipe, *_ in self.tried:
            with self.subTest(recipe.name):
                self.assertEqual(list(recipe.head), NAMES)
                self.assertTrue(recipe.text.startswith("#:schema ../../docs/pipeline.schema.json\n# "))
                self.assertEqual(recipe.tables["pipeline"]["name"], recipe.name)
                self.assertTrue(any(recipe.head["model"].startswith(f"hf download {name}") for name in recipe.checkpoints()))
                for command in ("plan", "start"):
                    self.assertIn(f"{recipe.name}.toml", recipe.head[command])
                folder = re.search(r"--local-dir (\S+)", recipe.head["data"])[1]
                for name in recipe.sources():
                    self.assertTrue(recipe.tables["nodes"][name]["path"].startswith(folder + "/"))

    def test_the_page_has_a_row_for_each(self):
        found = [line for line in PAGE.read_text().splitlines() if line.startswith("| [") and "../pipelines/recipes/" in line]
        self.assertEqual(found, [recipe.table_row() for recipe, *_ in self.tried])


class Shapes(unittest.TestCase):
    def parameters(self, shape):
        with tempfile.TemporaryDirectory(prefix="sluice-shape-") as folder:
            model = make_model(pathlib.Path(folder) / "model", shape)
            return int(re.search(r"parameters +(\d+)", run_in(folder, "model", "info", model).stdout)[1])

    def test_are_as_large_as_the_models_are(self):
        self.assertEqual(dict(zip(PARAMETERS, each(self.parameters, PARAMETERS))), PARAMETERS)


if __name__ == "__main__":
    unittest.main()
