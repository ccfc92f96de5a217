"""Pipelines with one mistake each, of those that the schema of `rlhf-run schema` can express."""

import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent

# (what is wrong, the file, text that stands there once, what stands there instead, what taplo says)
MUTANTS = [
    ("a key that no table has", "ppo", "iterations = 120", "iterations = 120\nitertions = 3", "'itertions' was unexpected"),
    ("a required key is missing", "ppo", "iterations = 120\n", "", '"iterations" is a required property'),
    ("another kind of value", "ppo", "iterations = 120", 'iterations = "120"', 'is not of type "integer"'),
    ("below the range", "ppo", "iterations = 120", "iterations = 0", "less than the minimum of 1"),
    ("a number that is no integer", "ppo", "iterations = 120", "iterations = 1.5", 'is not of type "integer"'),
    ("a preset that nobody has", "ppo", "seed = 1", 'preset = "vrl"', '"vrl" is not one of'),
    ("a table that no pipeline has", "ppo", "[budget]", "[budgets]", "'budgets' was unexpected"),
    ("a required table is missing", "ppo", "[pipeline]\nname = \"ppo\"\niterations = 120\nseed = 1\n", "",
     '"pipeline" is a required property'),
    ("a word where a number or auto stands", "ppo", "micro_batch_tokens = 512", 'micro_batch_tokens = "automatic"',
     "does not match"),
    ("a key outside of all tables", "ppo", "[pipeline]", "iterations = 3\n[pipeline]", "'iterations' was unexpected"),
    ("a key of a model", "ppo", "[models.reference]", "[models.reference]\nchekpoint = \"x\"", "'chekpoint' was unexpected"),
    ("an optimizer without its rate", "ppo", "[models.actor]", "[models.other]\noptimizer = { beta1 = 0.9 }\n[models.actor]",
     '"learning_rate" is a required'),
    ("a key of the optimizer", "ppo", "[models.actor]",
     "[models.other]\noptimizer = { learning_rate = 1, beta = 1 }\n[models.actor]", "'beta' was unexpected"),
    ("a choice of the optimizer", "ppo", "[models.actor]",
     '[models.other]\noptimizer = { learning_rate = 1, schedule = "cosin" }\n[models.actor]', '"cosin" is not one of'),
    ("a model that is no table", "ppo", "[models.actor]", "[models]\nother = 3\n[models.actor]", "3 is not of type"),
    ("a model that is removed where none is inherited", "ppo", "[models.actor]", "[models]\nother = false\n[models.actor]",
     'is not of type "object"'),
    ("a name with a space", "ppo", "[models.reference]", '[models."the reference"]', "does not match"),
    ("a node without a type", "ppo", 'type = "jsonl_prompts"\npath = "data/arithmetic_train.jsonl"',
     'path = "data/arithmetic_train.jsonl"', '"type" is a required property'),
    ("a node type that nobody has", "ppo", 'type = "gae"', 'type = "gea"', '"gea" is not one of'),
    ("a key of another node type", "ppo", 'type = "gae"', 'type = "gae"\nsamples_per_prompt = 4',
     "'samples_per_prompt' was unexpected"),
    ("above the range", "ppo", 'type = "gae"', 'type = "gae"\nwhiten_epsilon = -0.5', "less than the minimum of 0"),
    ("at the end of a range that it excludes", "ppo", "[nodes.generate]", "[cluster]\njoin_seconds = 0\n[nodes.generate]",
     "less than or equal to the minimum of 0"),
    ("a choice that nobody has", "ppo", 'type = "gae"', 'type = "gae"\nmasked_actions = "skip"', '"skip" is not one of'),
    ("a boolean in quotes", "ppo", 'type = "gae"', 'type = "gae"\nwhiten_mean = "true"', 'is not of type "boolean"'),
    ("inputs that are no list", "ppo", 'inputs = ["prompts"]', 'inputs = "prompts"', 'is not of type "array"'),
    ("an input twice", "ppo", 'inputs = ["prompts"]', 'inputs = ["prompts", "prompts"]', "has non-unique elements"),
    ("inputs of a source", "ppo", 'path = "data/arithmetic_train.jsonl"',
     'path = "data/arithmetic_train.jsonl"\ninputs = ["generate"]', "'inputs' was unexpected"),
    ("a node without inputs", "ppo", 'inputs = ["prompts"]\n', "", '"inputs" is a required property'),
    ("an objective that nobody has", "gspo", '{ type = "gspo",', '{ type = "gpso",', "is not valid under any"),
    ("a key of an objective", "gspo", "clip_low = 3e-4", "cliplow = 3e-4", "is not valid under any"),
    ("an objective that is a number", "gspo", "objective = {", "objective = 3 # {", "3 is not valid under any"),
    ("a component without what it needs", "calculator", 'type = "calculator"', 'type = "process"',
     '"command" is a required property'),
    ("a misspelt key over an inherited node", "ppo_dynamic", "[nodes.prompts]\ngroups_per_iteration",
     "[nodes.prompts]\ngroup_per_iteration", '"group_per_iteration" is not one of'),
    ("a misspelt key over an inherited optimizer", "dapo", "[pipeline]",
     "[models.actor]\noptimizer = { learnin_rate = 1 }\n[pipeline]", "'learnin_rate' was unexpected"),
    ("true where false removes", "dapo", "[models]\nreference = false", "[models]\nreference = true", "is not allowed"),
    ("a range of a role", "ppo", "[nodes.generate]", "[cluster.roles.train]\nranks = 0\n[nodes.generate]",
     "less than the minimum of 1"),
    ("a role without ranks", "ppo", "[nodes.generate]", "[cluster.roles.train]\nelastic = true\n[nodes.generate]",
     '"ranks" is a required property'),
    ("a device that has another kind", "ppo", "[nodes.generate]", '[devices."gpu:0"]\nmemory_gib = 8\n[nodes.generate]',
     "does not match"),
]


def mutant(name, there, instead):
    """The text of pipelines/NAME.toml with the mistake in it."""
    text = (ROOT / "pipelines" / f"{name}.toml").read_text()
    assert there in text, f"{there!r} is not in {name}.toml"
    return text.replace(there, instead, 1)
