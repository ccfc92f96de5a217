"""What the tests of the program share: running it, a small PPO pipeline, safetensors by hand. Standard library only."""

import contextlib
import fcntl
import json
import os
import pathlib
import pty
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
sys.path.insert(0, str(ROOT / "tests/quick_start"))
from quick_start import run_program  # noqa: E402

PROGRAM = os.environ.get("SLUICE_PROGRAM", str(ROOT / "build/release/cli/rlhf-run"))
DATA = pathlib.Path(os.environ.get("SLUICE_TEST_DATA", ROOT.parent / "shared/data"))
PPO = ROOT / "pipelines/ppo.toml"
MODEL = ROOT / "pipelines/models/tiny-arithmetic"
TERMINAL = {"TERM": "xterm-256color", "LANG": "C.UTF-8", "LC_ALL": "", "LC_CTYPE": "", "NO_COLOR": ""}

DONE, FAILED, WRONG_USAGE, WRONG_PIPELINE, INTERRUPTED, TERMINATED = 0, 1, 64, 78, 130, 143

# ppo.toml, small enough that a run takes a fraction of a second. What a test counts with is set here: the pipeline may be tuned.
SMALL = {
    "pipeline.iterations": 2,
    "pipeline.seed": 1,
    "budget.tokens_in_flight": 8448,  # 256 of them of the held-out path
    "budget.micro_batch_tokens": 2048,
    "checkpoint.every_iterations": 0,
    "models.actor.optimizer.learning_rate": 1e-4,
    "models.critic.optimizer.learning_rate": 1e-3,
    "nodes.prompts.groups_per_iteration": 16,
    "nodes.generate.samples_per_prompt": 4,
    "nodes.generate.max_prompt_tokens": 8,
    "nodes.generate.max_new_tokens": 6,
    "nodes.generate.on": "cpu:1",
    "nodes.held_out.groups_per_iteration": 8,
    "nodes.advantages.whiten": "iteration",
    "nodes.train.mini_batches": 4,
}


def sets(**tables):
    """--set arguments: sets(**{"pipeline.seed": 2}). A value is written as TOML; None leaves the key out."""
    words = []
    for key, value in tables.items():
        if value is None:
            continue
        text = value if isinstance(value, str) else json.dumps(value)
        words += ["--set", f"{key}={text}"]
    return words


def run(*words, cwd=ROOT, **options):
    """Runs the program to its end; stdout and stderr are text."""
    return run_program([PROGRAM, *words], cwd=cwd, **options)


def on_terminal(*words, cwd=ROOT, columns=None, watch=None, **environment):
    """Runs the program on a terminal of its own: the exit code, and what that gets, line ends as written.

    `watch(terminal, process, screen)` is called after each piece, with all that came so far.
    """
    master, slave = pty.openpty()
    if columns:
        resize(master, columns)
    process = subprocess.Popen([PROGRAM, *map(str, words)], cwd=cwd, stdin=subprocess.DEVNULL, stdout=slave, stderr=slave,
                               env={**os.environ, **TERMINAL, **environment})
    os.close(slave)
    screen = b""
    with contextlib.suppress(OSError):  # the other end is closed
        while piece := os.read(master, 65536):
            screen += piece
            if watch:
                watch(master, process, screen.decode(errors="ignore"))
    os.close(master)
    return process.wait(timeout=60), screen.decode().replace("\r\n", "\n")


def resize(terminal, columns):
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))


def start(*words, before=(), **options):
    """Starts the program without waiting for it, as the last words of another one where there is one before it."""
    return subprocess.Popen([*before, PROGRAM, *map(str, words)], cwd=ROOT, **options)


def wait_for(what, condition, seconds=60):
    """Until `condition` holds; an error that names `what` if it does not come to that."""
    for _ in range(int(seconds * 100)):
        if condition():
            return
        time.sleep(0.01)
    raise AssertionError(f"{what} did not come")


def metrics_so_far(run_folder):
    """The rows of metrics.jsonl of a run that may go on: a reader can see the first part of the line that is being written."""
    whole, _, _ = (run_folder / "metrics.jsonl").read_text().rpartition("\n")
    return [json.loads(line) for line in whole.splitlines()]


def wait_for_iteration(run_folder):
    metrics = run_folder / "metrics.jsonl"
    wait_for("an iteration", lambda: metrics.exists() and metrics.stat().st_size > 0)


class Case(unittest.TestCase):
    """A test with a folder of its own, `self.folder`."""

    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="sluice-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def write(self, name, content):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run_in_folder(self, *words, **environment):
        return run(*words, cwd=self.folder, env={**os.environ, **environment})

    def run_ppo(self, name="run", expect=DONE, pipeline=PPO, anew=False, **overrides):
        """Runs the small pipeline into folder/name and returns a Finished."""
        folder = self.folder / name
        done = run("run", pipeline, "--run-dir", folder, *sets(**{**SMALL, **overrides}), anew=anew)
        self.assertEqual(done.returncode, expect, done.stderr + done.stdout)
        return Finished(folder, done)

    def lines_of(self, name):
        """What repeats of the metrics of the run in folder/name, which may go on."""
        return repeatable(metrics_so_far(self.folder / name))

    def models_of(self, name):
        """What training goes on from, by model, as the newest checkpoint of the run in folder/name has it."""
        checkpoint = (self.folder / name / "checkpoint").resolve()
        return {model: training_state(checkpoint, model) for model in ("actor", "critic")}

    def layer(self, text, name="p.toml"):
        """A file over the small pipeline; `text` begins at its line 2."""
        lines = [f'extends = "{PPO}"']
        for key, value in SMALL.items():
            lines.append(f"{key} = {json.dumps(value)}")
        self.write("small.toml", "\n".join(lines) + "\n")
        return self.write(name, f'extends = "small.toml"\n{text}')

    def saving_pipeline(self):
        """ppo.toml, with every sample in samples.jsonl of the run folder."""
        return self.write("saving.toml", f'extends = "{PPO}"\n[nodes.samples]\ntype = "write_jsonl"\ninputs = ["score"]\n')

    def assert_is_golden(self, name, text, names):
        """`text` is that of tests/golden/NAME, where `names` are called something that is the same in any folder."""
        for path, called in names.items():
            text = text.replace(str(path), called)
        golden = ROOT / "tests/golden" / name
        if os.environ.get("SLUICE_UPDATE_GOLDEN") == "1":
            golden.parent.mkdir(parents=True, exist_ok=True)
            golden.write_text(text)
        self.assertEqual(golden.read_text() if golden.exists() else None, text,
                         f"differs from {golden}; if that is meant, run again with SLUICE_UPDATE_GOLDEN=1")

    def assert_refused(self, done, *texts, code=WRONG_PIPELINE, problems=1):
        """The program ended with `code`; its message holds `texts`, is short, and is no crash."""
        message = done.stderr
        self.assertEqual(done.returncode, code, message + done.stdout)
        for text in texts:
            self.assertIn(text, message)
        for word in ("internal error", "terminate", "Traceback", "what():", "bug in sluice", "Assertion"):
            self.assertNotIn(word, message + done.stdout)
        self.assertEqual(sum(": error: " in line or line.startswith("error: ") for line in message.splitlines()), problems,
                         message)
        self.assertLessEqual(len(message.splitlines()), 12 * problems + 2, message)
        if problems > 1:
            self.assertEqual(message.splitlines()[-1], f"{problems} problems; nothing was run")


class Finished:
    """A run folder and what the program printed."""

    def __init__(self, folder, done):
        self.folder, self.stdout, self.stderr = folder, done.stdout, done.stderr

    @property
    def metrics(self):
        return [json.loads(line) for line in (self.folder / "metrics.jsonl").read_text().splitlines()]

    @property
    def samples(self):
        return [json.loads(line) for line in (self.folder / "samples.jsonl").read_text().splitlines()]

    @property
    def trace(self):
        return json.loads((self.folder / "trace.json").read_text())

    def weights(self, model):
        return read_safetensors(self.folder / "checkpoint" / model / "model.safetensors")


def repeatable(metrics):
    """The metrics that may not depend on timing."""
    return [{key: value for key, value in row.items() if not key.startswith(("time/", "memory/", "engine/"))} for row in metrics]


def read_safetensors(path):
    """{name: (dtype, shape, bytes)}."""
    content = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + length])
    header.pop("__metadata__", None)
    data = content[8 + length:]
    return {name: (entry["dtype"], tuple(entry["shape"]), data[slice(*entry["data_offsets"])]) for name, entry in header.items()}


def training_state(checkpoint, model):
    """{tensor: bytes} of what training goes on from, whichever ranks have written pieces of it."""
    pieces = {}
    for path in pathlib.Path(checkpoint).glob(f"{model}.optimizer*.safetensors"):
        for name, (_, _, content) in read_safetensors(path).items():
            tensor, _, place = name.partition("[")
            pieces.setdefault(tensor, {})[int(place.split(":")[0]) if place else 0] = content
    return {tensor: b"".join(parts[first] for first in sorted(parts)) for tensor, parts in pieces.items()}


def safetensors(tensors, change_header=lambda header: None):
    """The bytes of a file with {name: (dtype, shape, bytes)}; `change_header` may spoil the header before it is written."""
    header, data = {}, b""
    for name, (dtype, shape, content) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [len(data), len(data) + len(content)]}
        data += content
    change_header(header)
    text = json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + data


@contextlib.contextmanager
def small_disk(folder, size):
    """A file system of `size` bytes at `folder`. Skips the test where mounting is not permitted."""
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], capture_output=True, text=True)
    if mounted.returncode != 0:
        raise unittest.SkipTest("a full disk needs the right to mount a tmpfs: " + mounted.stderr.strip())
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def skip_or_fail(reason):
    """For what a machine may lack: skips, except where CI=true."""
    if os.environ.get("CI") == "true":
        raise AssertionError(reason)
    raise unittest.SkipTest(reason)


SAMPLERS = ("generate",)
SOURCES = ("jsonl_prompts",)


def with_roles(pipeline, training=2, sampling=2, elastic=False, forward=None):
    """A file that extends a pipeline of pipelines/, with what samples on ranks of its own; those that train do so too where there
    are none. `forward`: of roles that compute passes of frozen models, the ranks and the nodes, by name."""
    config = run("plan", ROOT / "pipelines" / pipeline, "--config").stdout
    types = dict(re.findall(r'(?m)^\[nodes\.(\w+)\]\ntype = "(\w+)"', re.sub(r"  +#.*", "", config)))
    lines = [f'extends = "{ROOT / "pipelines" / pipeline}"', "[cluster.roles.train]", f"ranks = {training}"]
    lines += ["[cluster.roles.rollout]", f"ranks = {sampling}"] if sampling else []
    lines += ["elastic = true"] if elastic else []
    roles = {}
    for role, (ranks, nodes) in (forward or {}).items():
        lines += [f"[cluster.roles.{role}]", f"ranks = {ranks}"]
        roles |= dict.fromkeys(nodes, role)
    samples = any(kind in SAMPLERS for kind in types.values())
    for name, kind in types.items():
        if kind not in SOURCES or not samples:
            lines += [f"[nodes.{name}]", f'on = "{roles.get(name, "rollout" if kind in SAMPLERS and sampling else "train")}"']
    return "\n".join(lines) + "\n"
