"""Every place where the program takes a path meets what a stranger may put there, as root and as an ordinary user: something
unreadable, a pipe without a writer, links in a circle, a huge file with nothing in it, a device without end, a folder that may
not be written, names with control characters. It always says so in a sentence of its own: no bug is reported, nothing hangs,
nothing grows.

A start takes half a second, so one in eleven of the cases runs; SLUICE_WALK=all runs them all and prints the worst of each
figure.
"""

import concurrent.futures
import json
import os
import shutil
import stat
import subprocess
import sys
import threading
import time
import unittest

from support import MODEL, PPO, PROGRAM, ROOT, SMALL, Case, run, sets

ALL = os.environ.get("SLUICE_WALK") == "all"
LONGEST_S = 5 if ALL else 60  # where other tests run beside it, only a hang is told apart
MOST_BYTES = 512 << 20
CONTROL = "a\x1b[31mb\nc\x9b"
MODEL_FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json",
               "model.safetensors", "model.safetensors.index.json")
RUN_FILES = ("pipeline.toml", "lock", "metrics.jsonl", "trace.json", "status.json", "checkpoints", "checkpoints/1/manifest.json",
             "checkpoints/1/actor/model.safetensors", "checkpoints/1/actor/config.json", "costs.json")


def unreadable(path):
    """What is there keeps its content."""
    if not path.exists():
        path.write_text("{}")
    path.chmod(0)


def read_only(path):
    if not path.exists():
        path.mkdir()
    path.chmod(stat.S_IRUSR | stat.S_IXUSR | stat.S_IROTH | stat.S_IXOTH)


def cleared(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
    return path


def pipe(path):
    os.mkfifo(cleared(path))


def circle(path):
    cleared(path).symlink_to(path.name)


def hollow(path):
    with open(cleared(path), "wb") as file:
        file.truncate(200 << 30)


def endless(path):
    cleared(path).symlink_to("/dev/zero")


def named_oddly(path):
    """Content stays; the caller uses the new name."""
    odd = path.with_name(CONTROL + path.name)
    if path.exists():
        path.rename(odd)
    return odd


KINDS = {f.__name__: f for f in (unreadable, pipe, circle, hollow, endless, read_only, named_oddly)}


class Place:
    """Where a path goes: a command line of `words` with "{}" for it, and what has to be there to begin with. `inside` is a file
    of the folder that `words` name."""

    def __init__(self, name, words, good, inside=None, stdin=""):
        self.name, self.words, self.good, self.inside, self.stdin = name, words, good, inside, stdin

    def kinds(self):
        return [kind for kind in KINDS if not (self.inside and kind == "named_oddly")]


def places():
    found = []
    for command in ("validate", "plan", "graph", "simulate", "run"):
        found.append(Place(command, (command, "{}"), "pipeline"))
    found.append(Place("run --run-dir", ("run", PPO, "--run-dir", "{}", *sets(**SMALL), "--set", "pipeline.iterations=1"),
                       "nothing"))
    found.append(Place("run --resume", ("run", PPO, "--resume", "auto", "--run-dir", "{}", *sets(**SMALL)), "run"))
    found.append(Place("simulate --costs", ("simulate", PPO, "--costs", "{}"), "file"))
    found.append(Place("simulate --trace", ("simulate", PPO, "--iterations", "1", "--trace", "{}"), "nothing"))
    for key in ("nodes.prompts.path", "models.actor.checkpoint"):
        found.append(Place(key, ("validate", PPO, "--set", key + "={}"), "file"))
    for command in (("resume",), ("top",), ("checkpoints", "list"), ("checkpoints", "verify"), ("checkpoints", "prune")):
        found.append(Place(" ".join(command), (*command, "{}"), "run"))
        for name in RUN_FILES:
            found.append(Place(" ".join(command) + " " + name, (*command, "{}"), "run", inside=name))
    found.append(Place("checkpoints export", ("checkpoints", "export", "{}", "--model", "actor", "--to", "OUT"), "run"))
    found.append(Place("checkpoints export --to", ("checkpoints", "export", "RUN", "--model", "actor", "--to", "{}"), "nothing"))
    for command in ("info", "verify", "tokenize", "detokenize", "render", "logprobs", "sample"):
        words = ("model", command, "{}") + (("--max-new-tokens", "1") if command == "sample" else ())
        found.append(Place("model " + command, words, "model", stdin="[1, 2]\n"))
        for name in MODEL_FILES:
            found.append(Place(f"model {command} {name}", words, "model", inside=name, stdin="[1, 2]\n"))
    held_out = ROOT / "pipelines/data/arithmetic_heldout.jsonl"
    found.append(Place("checkpoints export metrics.jsonl", ("checkpoints", "export", "{}", "--model", "actor", "--to", "OUT"),
                       "run", inside="metrics.jsonl"))
    found.append(Place("model chat", ("model", "chat", "{}", "--max-new-tokens", "1"), "model", stdin="1\n"))
    found.append(Place("model chat --template", ("model", "chat", MODEL, "--template", "{}", "--max-new-tokens", "1"), "file",
                       stdin="1\n"))
    found.append(Place("model sample --prompts", ("model", "sample", MODEL, "--prompts", "{}", "--max-new-tokens", "1"), "file"))
    found.append(Place("model sample --output",
                       ("model", "sample", MODEL, "--prompts", held_out, "-o", "{}", "--max-new-tokens", "1"), "nothing"))
    for command in (("nodes",), ("describe", "gae"), ("try", "gae")):
        found.append(Place(command[0] + " --plugin", (*command, "--plugin", "{}"), "file", stdin="{}"))
    return found


class HostilePaths(Case):
    def setUp(self):
        super().setUp()
        self.folder.chmod(0o755)
        small = "".join(f"{key} = {json.dumps(value)}\n" for key, value in {**SMALL, "pipeline.iterations": 1}.items())
        self.write("good/pipeline.toml", f'extends = "{PPO}"\n{small}')
        shutil.copytree(MODEL, self.folder / "good/model")
        # A run that has ended, with a checkpoint.
        done = run("run", PPO, "--run-dir", self.folder / "good/run", *sets(**{**SMALL, "pipeline.iterations": 1}))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.worst = {"seconds": 0.0, "bytes": 0}
        self.lock = threading.Lock()

    def prepared(self, number, place, kind):
        """A folder of its own with what `place` needs, spoilt by `kind`; the command line."""
        base = self.folder / f"case-{number}"
        base.mkdir()
        target = base / "it"
        if place.good in ("model", "run"):
            shutil.copytree(self.folder / "good" / place.good, target, symlinks=True)
        elif place.good == "pipeline":
            target = base / "p.toml"
            shutil.copy(self.folder / "good/pipeline.toml", target)
        elif place.good == "file":
            target.write_text("{}\n")
        spoilt = target / place.inside if place.inside else target
        odd = KINDS[kind](spoilt)
        others = {"OUT": base / "out", "RUN": self.folder / "good/run"}
        return base, [str(others.get(word, word)).replace("{}", str(odd or target)) for word in map(str, place.words)]

    def run_case(self, number, place, kind, ordinary):
        base, words = self.prepared(number, place, kind)
        command = [PROGRAM, *words]
        if ordinary and os.geteuid() == 0:  # root without its powers is an ordinary user
            command = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "--no-new-privs", *command]
        begin = time.monotonic()
        with open(base / "stdout", "wb") as out, open(base / "stderr", "wb") as err:
            process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=out, stderr=err, cwd=ROOT)
            alarm = threading.Timer(LONGEST_S, process.kill)
            alarm.start()
            try:
                process.stdin.write(place.stdin.encode())
                process.stdin.close()
            except BrokenPipeError:
                pass
            _, status, usage = os.wait4(process.pid, 0)
            alarm.cancel()
            process.returncode = os.waitstatus_to_exitcode(status)
        seconds, message = time.monotonic() - begin, (base / "stderr").read_text(errors="replace")
        text = f"{place.name}, {kind}, {'ordinary user' if ordinary else 'as it is'}: {process.returncode}\n{message}"
        with self.lock:
            self.worst["seconds"] = max(self.worst["seconds"], seconds)
            self.worst["bytes"] = max(self.worst["bytes"], usage.ru_maxrss << 10)
        problems = []
        if process.returncode < 0 or seconds > LONGEST_S:
            problems.append("killed or hanging")
        if any(word in message for word in ("internal error", "bug in sluice", "terminate", "what():", "filesystem error")):
            problems.append("calls itself a bug")
        if usage.ru_maxrss << 10 > MOST_BYTES:
            problems.append(f"took {usage.ru_maxrss >> 10} MiB")
        if process.returncode != 0 and not message and not (base / "stdout").stat().st_size:
            problems.append("says nothing")
        if "\x1b" in message:
            problems.append("control characters reach the terminal")
        subprocess.run(["chmod", "-R", "u+rwX", str(base)], stderr=subprocess.DEVNULL)
        shutil.rmtree(base, ignore_errors=True)
        return f"{', '.join(problems)}: {text}" if problems else None

    def test_every_place_takes_every_path(self):
        cases = [(place, kind, ordinary) for place in places() for kind in place.kinds() for ordinary in (False, True)]
        if not ALL:
            cases = cases[::11]  # a prime: each kind of path meets each place that takes many
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            failures = [text for text in pool.map(lambda case: self.run_case(case[0], *case[1]), enumerate(cases)) if text]
        if ALL:
            print(f"{len(cases)} cases; at most {self.worst['seconds']:.1f} s and {self.worst['bytes'] >> 20} MiB",
                  file=sys.stderr)
        self.assertFalse(failures, f"{len(failures)} of {len(cases)} cases failed:\n\n" + "\n".join(failures[:20]))


if __name__ == "__main__":
    unittest.main()
