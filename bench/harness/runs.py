"""Pipelines that the benches write, and runs of them by the program that users run."""

import json
import os
import re
import shutil
import subprocess
import sys

from . import shapes

HEAD = """[pipeline]
name = "bench"
iterations = {iterations}
seed = 1

[budget]
tokens_in_flight = {tokens_in_flight}
micro_batch_tokens = {micro_batch_tokens}
pass_tokens = {pass_tokens}
{tables}
[schedule]
policy_lag = {lag}

{models}
[nodes.prompts]
type = "jsonl_prompts"
path = "prompts.jsonl"
groups_per_iteration = {prompts}

[nodes.generate]
type = "generate"
inputs = ["prompts"]
model = "actor"
samples_per_prompt = {samples}
max_prompt_tokens = {max_prompt_tokens}
max_new_tokens = {new}
max_running_samples = {running}
ignore_end_of_sequence = true
on = "{rollout_on}"
"""

GRPO = """
[nodes.score]
type = "regex_match"
inputs = ["generate"]
pattern = "7"

[nodes.advantages]
type = "grpo"
inputs = ["score"]

[nodes.train]
type = "train_ppo"
inputs = ["advantages"]
actor = "actor"

[nodes.sync]
type = "sync_weights"
inputs = ["train"]
model = "actor"
"""

# Kept near to what the policy began with.
GRPO_WITH_REFERENCE = GRPO.replace('inputs = ["advantages"]', 'inputs = ["advantages", "reference"]').replace(
    'actor = "actor"', 'actor = "actor"\nobjective = { type = "ppo_clip", kl_coefficient = 0.01, kl_estimator = "k3" }') + """
[nodes.reference]
type = "logprobs"
inputs = ["generate"]
model = "reference"
"""

PPO = """
[nodes.score]
type = "reward_model"
inputs = ["generate"]
model = "reward"

[nodes.reference]
type = "logprobs"
inputs = ["generate"]
model = "reference"

[nodes.values]
type = "values"
inputs = ["generate"]
model = "critic"

[nodes.rewards]
type = "token_rewards"
inputs = ["score", "reference"]
kl_coefficient = 0.05

[nodes.advantages]
type = "gae"
inputs = ["rewards", "values"]
whiten = "none"

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

# Name: whether it is trained, and its head.
ROLES = {"actor": (True, "language_model"), "critic": (True, "value"), "reference": (False, "language_model"),
         "reward": (False, "value")}
MODELS_OF = {GRPO: ["actor"], GRPO_WITH_REFERENCE: ["actor", "reference"], PPO: list(ROLES)}


def model_table(name, dtype, of_trained=""):
    """of_trained: more lines of the models that are trained. With LoRA the reference is the base of the actor."""
    if name == "reference" and "lora" in of_trained:
        return '[models.reference]\nbase_of = "actor"\n\n'
    trained, head = ROLES[name]
    optimizer = "optimizer = { learning_rate = 1e-5 }\n" + of_trained if trained else ""
    compute = f'dtype = "{dtype}"\n' if dtype != "float32" else ""
    return f'[models.{name}]\ncheckpoint = "model"\ninit = "random"\nhead = "{head}"\n{compute}{optimizer}\n'


class Pipeline:
    """One pipeline in a folder of its own, with the model and the prompts that it reads. A lag of 1 has an executor for
    generation.

    rest_on: where all nodes are after generation."""

    def __init__(self, folder, size, nodes, dtype, prompts, samples, new, lag=0, rollout_on="cpu", rest_on="", of_trained="",
                 tables="", **budget):
        self.folder, self.size = folder, size
        self.sampled_tokens = prompts * samples * new
        group = samples * (shapes.PROMPT_TOKENS + new)
        iteration = prompts * group
        micro_batch = budget.get("micro_batch_tokens") or max(group, min(iteration, 4608))
        shapes.write_model(folder / "model", size, positions=shapes.PROMPT_TOKENS + new)
        shapes.write_prompts(folder / "prompts.jsonl")
        self.values = dict(models="".join(model_table(name, dtype, of_trained) for name in MODELS_OF[nodes]), prompts=prompts,
                           samples=samples, new=new, lag=lag, max_prompt_tokens=shapes.PROMPT_TOKENS,
                           running=budget.get("running") or prompts * samples, rollout_on=rollout_on,
                           micro_batch_tokens=micro_batch, tables=tables, pass_tokens=budget.get("pass_tokens") or '"auto"',
                           tokens_in_flight=budget.get("tokens_in_flight") or (1 + lag) * iteration)
        self.nodes = re.sub(r"(?m)^(\[nodes\..*\])$", rf'\1\non = "{rest_on}"', nodes) if rest_on else nodes

    def run(self, program, iterations, ranks=1):
        """The figures of each iteration, and the most memory that the process had, in bytes. Its memory report is self.memory."""
        pipeline = self.folder / "bench.toml"
        pipeline.write_text(HEAD.format(iterations=iterations, **self.values) + self.nodes)
        run_folder = self.folder / f"run-{len(list(self.folder.glob('run-*')))}"
        with open(self.folder / "errors.txt", "w+") as errors:
            words = ["launch", "--ranks", str(ranks)] if ranks > 1 else ["run"]
            process = subprocess.Popen([program, *words, pipeline, "--run-dir", run_folder], stdout=subprocess.DEVNULL,
                                       stderr=errors)
            _, status, usage = os.wait4(process.pid, 0)
            process.returncode = os.waitstatus_to_exitcode(status)
            if process.returncode != 0:
                errors.seek(0)
                sys.exit(f"error: {program} {pipeline} ended with {process.returncode}\n{errors.read()}")
        rows = [json.loads(line) for line in (run_folder / "metrics.jsonl").read_text().splitlines()]
        self.memory = json.loads((run_folder / "memory.json").read_text())
        shutil.rmtree(run_folder / "checkpoints")  # of a large model gigabytes
        if any(row["rollout/sampled_tokens"] != self.sampled_tokens for row in rows):
            sys.exit(f"error: {run_folder} sampled other numbers of tokens than {self.sampled_tokens} an iteration")
        return rows, usage.ru_maxrss * 1024
