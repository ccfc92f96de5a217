"""What the tests of pipelines/ share: a pipeline runs to its end, and what came of it."""

import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tomllib

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
from support import DATA, DONE, ROOT, Case, repeatable, run, sets, start, training_state, wait_for, with_roles  # noqa: E402, F401

ROUTES = {"nodes.generate.routes": "true", "nodes.train.replay_routes": "true"}  # of a mixture of experts


def mean(rows, key):
    return sum(row[key] for row in rows) / len(rows)


def merged(path):
    """The tables of a file and of those that it extends."""
    layer = tomllib.loads(path.read_text())
    base = merged(path.parent / layer.pop("extends")) if "extends" in layer else {}

    def lay_over(tables, above):
        for key, value in above.items():
            if isinstance(value, dict) and isinstance(tables.get(key), dict):
                lay_over(tables[key], value)
            else:
                tables[key] = value
        return tables
    return lay_over(base, layer)


def tables(of, name):
    return {key: table for key, table in of.get(name, {}).items() if isinstance(table, dict)}


def few_groups(path):
    """Sets for two iterations of few groups."""
    overrides = {"pipeline.iterations": 2}
    for name, node in tables(merged(path), "nodes").items():
        if "groups_per_iteration" in node:
            overrides[f"nodes.{name}.groups_per_iteration"] = min(node["groups_per_iteration"], 12)
    return overrides


class PipelineCase(Case):
    def metrics(self, pipeline, name, **overrides):
        """Runs a pipeline to its end; the rows of its metrics.jsonl."""
        folder = self.folder / name
        result = run(ROOT / "pipelines" / pipeline, "--run-dir", folder, *sets(**overrides), timeout=600)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]

    def rows_of(self, path):
        return [json.loads(line) for line in (self.folder / path).read_text().splitlines()]

    def mixture(self, **changed):
        """The folder of a mixture of experts without weights, with the tokenizer of tiny-random."""
        model = self.folder / "-".join(["experts", *(f"{key}-{value}" for key, value in changed.items())])
        if model.exists():
            return model
        shutil.copytree(ROOT / "pipelines/models/tiny-random", model)
        config = json.loads((model / "config.json").read_text()) | {
            "architectures": ["Qwen3MoeForCausalLM"], "model_type": "qwen3_moe", "num_hidden_layers": 2, "num_experts": 8,
            "num_experts_per_tok": 2, "moe_intermediate_size": 64, "norm_topk_prob": True} | changed
        del config["mlp_bias"]
        (model / "config.json").write_text(json.dumps(config))
        return model

    def random(self, *models, **changed):
        """Sets for models without weights that are like tiny-arithmetic but for some keys of its config."""
        folder = self.folder / "-".join(f"{key}-{value}" for key, value in changed.items())
        if not folder.exists():
            shutil.copytree(ROOT / "pipelines/models/tiny-arithmetic", folder, ignore=shutil.ignore_patterns("*.safetensors"))
            config = json.loads((folder / "config.json").read_text()) | changed
            (folder / "config.json").write_text(json.dumps(config))
        return {f"models.{model}.{key}": value for model in models
                for key, value in (("checkpoint", str(folder)), ("init", "random"))}

    def accuracy(self, checkpoint, name):
        """Share of the held-out sums that the likeliest answer gets right."""
        return self.metrics("evaluate.toml", name, **{"models.policy.checkpoint": str(checkpoint)})[0]["reward/score_mean"]


SLOTS = {"cluster.slots": 4}
TIMED = ("time/", "memory/", "engine/")
WEIGHTS = (".safetensors", ".json")


class RanksCase(PipelineCase):
    """Of runs on several processes."""

    def run_on(self, ranks, pipeline, name="", **overrides):
        folder = self.folder / f"{pathlib.PurePath(pipeline).name}-{ranks}{name}"
        how = ("launch", "--ranks", ranks) if ranks > 1 else ("run",)
        result = run(*how, ROOT / "pipelines" / pipeline, "--run-dir", folder, *sets(**{**SLOTS, **overrides}), timeout=600)
        self.assertEqual(result.returncode, DONE, result.stderr)
        return folder

    def launched(self, ranks, pipeline, **overrides):
        """A run on several ranks that goes on, and has saved a checkpoint."""
        folder = self.folder / "launched"
        more = {"pipeline.iterations": 400, "checkpoint.every_iterations": 2, "cluster.dead_after_seconds": 3}
        process = start("launch", "--ranks", str(ranks), str(ROOT / "pipelines" / pipeline), "--run-dir", str(folder), text=True,
                        *sets(**overrides, **more), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        wait_for("a checkpoint", lambda: (folder / "checkpoint").exists(), seconds=120)
        return process

    def kill_a_rank(self, ranks, pipeline, rank, **overrides):
        """All others end, and name it."""
        launched = self.launched(ranks, pipeline, **overrides)
        killed = subprocess.run(["pgrep", "-P", str(launched.pid)], capture_output=True, text=True).stdout.split()[rank]
        os.kill(int(killed), signal.SIGKILL)
        out, said = launched.communicate(timeout=60)
        self.assertNotEqual(launched.returncode, DONE, out)
        self.assertRegex(said, rf"rank {rank} \(host .*, pid {killed}\)")

    def lines_of(self, folder):
        lines = []
        for line in (folder / "metrics.jsonl").read_text().splitlines():
            lines.append({name: value for name, value in json.loads(line).items() if not name.startswith(TIMED)})
        return lines

    def models_of(self, folder):
        """Files for others byte by byte; of what training goes on from, which ranks write in pieces, the tensors."""
        checkpoint = (folder / "checkpoint").resolve()
        files = {str(path.relative_to(checkpoint)): path.read_bytes() for path in sorted(checkpoint.rglob("*"))
                 if path.is_file() and path.suffix in WEIGHTS and path.name != "manifest.json" and ".optimizer" not in path.name}
        models = sorted({path.name.split(".optimizer")[0] for path in checkpoint.glob("*.optimizer*")})
        return files | {f"{model}/{name}": state for model in models for name, state in training_state(checkpoint, model).items()}

    def assert_equal_runs(self, ours, theirs):
        self.assertGreater(len(self.lines_of(theirs)), 0)
        self.assertEqual(self.lines_of(ours), self.lines_of(theirs))
        models, others = self.models_of(ours), self.models_of(theirs)
        self.assertEqual(sorted(models), sorted(others))
        self.assertEqual([name for name in models if models[name] != others[name]], [])
