"""The other side of nodes/scorers/python/python_scorer.cpp: loads a file, and scores samples with one of its functions.

usage: python3 -c SOURCE FILE FUNCTION DATA_SOURCE   (FUNCTION "": found by itself)

Says {"ready": {"function": ..., "form": ...}} or {"failure": ...} once, and then for each line
{"seed": ..., "iteration": ..., "groups": [...], "places": [...], "prompts": [...], "responses": [...], "labels": [...],
"messages": [...]} one line
{"scores": [...], "errors": [[index, what], ...], "metrics": {name: [...]}} or {"failure": ...}.
"""

import asyncio
import decimal
import fcntl
import functools
import importlib.util
import inspect
import json
import math
import numbers
import os
import random
import re
import resource
import sys
import traceback
import types

MODULE = "sluice_reward_file"
LONGEST = 2000  # characters of what an exception says
METRIC_NAME = re.compile("[A-Za-z0-9_./-]{1,200}")  # metric_name.cpp has the last word
LARGEST = 3.4028234663852886e38  # of float32, which scores are


def take_protocol():
    """Our own ends of stdin and stdout. What the file prints goes to stderr, and it reads nothing.

    What it starts inherits neither: they are closed by exec and after a fork. In this process they are out of the way of code
    that goes through all descriptors it might have; what is written there all the same is no answer, and fails the request.
    """
    requests, replies = (os.fdopen(away(descriptor), mode) for descriptor, mode in ((0, "rb"), (1, "wb")))
    os.register_at_fork(after_in_child=lambda: [os.close(channel.fileno()) for channel in (requests, replies)])
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    sys.stderr = os.fdopen(2, "w", buffering=1, encoding="utf-8", errors="backslashreplace", closefd=False)
    return requests, replies


def away(descriptor):
    """A copy of it under a high number."""
    highest = min(resource.getrlimit(resource.RLIMIT_NOFILE)[0], 1024)
    try:
        return fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, highest - 8)
    except OSError:
        return os.dup(descriptor)


class Unusable(Exception):
    """What is wrong with the file or with what a function returned, in words that need no traceback; and what to do."""

    def __init__(self, message, help=None):
        super().__init__(message)
        self.help = help


def load(path):
    folder = os.path.dirname(os.path.abspath(path))
    sys.path.insert(0, folder)
    spec = importlib.util.spec_from_file_location(MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[MODULE] = module
    spec.loader.exec_module(module)
    return module


# ---- what a function takes ----

TRL_KNOWN = ("prompts", "completions", "trainer_state", "log_extra", "log_metric", "environments")


def parameters_of(function):
    kinds = inspect.Parameter
    given = getattr(function, "keywords", {}) if isinstance(function, functools.partial) else {}
    return [p for p in inspect.signature(function).parameters.values()
            if p.kind not in (kinds.VAR_POSITIONAL, kinds.VAR_KEYWORD) and p.name not in given]


def takes_any_keyword(function):
    return any(p.kind is inspect.Parameter.VAR_KEYWORD for p in inspect.signature(function).parameters.values())


def form_of(function):
    """The name of the convention that the function's parameters follow, or None."""
    try:
        names = [p.name for p in parameters_of(function)]
    except (TypeError, ValueError):
        return None
    if "solution_str" in names:
        return "compute_score"
    if "solution_strs" in names:
        return "compute_scores"
    if "queries" in names:
        return "queries"
    if "completions" in names:
        return "completions"
    if names[:2] == ["args", "sample"]:
        return "sample"
    if names[:2] == ["args", "samples"]:
        return "samples"
    if "response" in names and set(names) <= {"prompt", "response", "label"}:
        return "response"
    return None


def signature_text(name, function):
    try:
        return name + str(inspect.signature(function))
    except (TypeError, ValueError):
        return name


CONVENTIONS = "call its parameters prompt, response and label (response must be there), or as docs/scorers.md says"


def undecided(functions, several):
    """Of a file without the one function that could score."""
    found = ", ".join(signature_text(n, f) for n, f in functions.items()) or "it has none"
    if not several:
        return Unusable(f"no function of it could score: {found}", CONVENTIONS)
    return Unusable(f"several functions of it could score: {found}",
                    f'function = "{next(iter(functions))}"; for the sum of several a node each, with another column in writes, '
                    "and a node of type combine_scores")


def help_for(error):
    """What to do about a file that cannot be loaded, or None."""
    if isinstance(error, ModuleNotFoundError):
        return f'python = "..." names the interpreter of an environment that has it; this is {sys.executable}'
    return getattr(error, "help", None)


def is_own(value):
    """Functions of the file, and objects that it has made to be called like them."""
    if inspect.isfunction(value):
        return value.__module__ == MODULE
    return (isinstance(value, functools.partial) or
            (callable(value) and not inspect.isclass(value) and type(value).__module__ == MODULE))


def choose(module, name):
    """The function to call, its name and its form."""
    if name:
        function = getattr(module, name, None)
        if not callable(function):
            raise Unusable(f"has no function {name}")
    else:
        own = {n: f for n, f in vars(module).items() if is_own(f) and not n.startswith("_")}
        for name in ("reward_func", "compute_score"):
            if callable(getattr(module, name, None)):
                function = getattr(module, name)
                break
        else:
            fitting = [n for n, f in own.items() if form_of(f)]
            if len(fitting) != 1:
                raise undecided({n: own[n] for n in fitting} or own, bool(fitting))
            name = fitting[0]
            function = own[name]
    form = form_of(function)
    if form is None:
        raise Unusable(f"{signature_text(name, function)} has parameters of no known convention", CONVENTIONS)
    if form == "completions":
        columns_needed(function)
    return function, name, form


def columns_needed(function):
    """Of a function in TRL's form: the names of other columns of the data that it cannot do without."""
    needed = [p.name for p in parameters_of(function) if p.name not in TRL_KNOWN and p.default is inspect.Parameter.empty]
    if "completion_ids" in needed:
        raise Unusable("needs completion_ids; only texts are there")
    return needed


# ---- numbers out of what it returned ----


def plain(value):
    """Tensors and arrays as lists or numbers."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return value


def number(value):
    value = plain(value)
    if isinstance(value, list) and len(value) == 1:
        value = plain(value[0])
    if value is None:
        raise Unusable("it returned None for this sample")
    if not isinstance(value, (numbers.Real, decimal.Decimal)):
        raise Unusable(f"it returned a value of type {type(value).__name__} instead of a number")
    try:
        value = float(value)
    except OverflowError:
        value = math.inf if value > 0 else -math.inf
    except ValueError:  # the signaling NaN of decimal
        value = math.nan
    if not abs(value) <= LARGEST:
        reason = "" if value != value or math.isinf(value) else f", and no number may be larger than {LARGEST:.4g}"
        raise Unusable(f"it returned {value} for this sample{reason}")
    return value


def is_finite(value):
    return abs(value) <= sys.float_info.max


def metrics_of(entries, skipped):
    metrics = {}
    for name, value in entries.items():
        value = plain(value)
        if isinstance(name, str) and name not in skipped and isinstance(value, (bool, int, float)) and is_finite(value):
            if not METRIC_NAME.fullmatch(name):
                raise Unusable(f"it named a metric {name[:80]!r}; names have letters, digits and _ - / .")
            metrics[name] = float(value)
    return metrics


class Result:
    """Scores of one request."""

    def __init__(self, samples):
        self.scores = [0.0] * samples
        self.errors = []
        self.metrics = {}

    def add_metrics(self, metrics):
        for name, value in metrics.items():
            self.metrics.setdefault(name, []).append(value)

    def put(self, index, value):
        """One sample: a number, or a dictionary with one. Whatever is wrong with it, it is this sample that has no score."""
        wrong = value if isinstance(value, BaseException) else value_or_error(lambda: self.take(index, value))
        if wrong is not None:
            self.errors.append([index, described(wrong)])

    def take(self, index, value):
        if not isinstance(value, dict):
            self.scores[index] = number(value)
            return
        key = next((k for k in ("score", "reward", "rewards") if k in value), None)
        if key is None:
            raise Unusable("it returned a dictionary without score or reward")
        self.scores[index] = number(value[key])
        self.add_metrics(metrics_of(value, (key,)))

    def put_all(self, values):
        values = plain(values)
        if not isinstance(values, (list, tuple)):
            raise Unusable(f"it returned a value of type {type(values).__name__} instead of a list of {len(self.scores)} numbers")
        if len(values) != len(self.scores):
            raise Unusable(f"it returned {len(values)} scores for {len(self.scores)} samples")
        for index, value in enumerate(values):
            self.put(index, value)

    def as_dict(self):
        return {"scores": self.scores, "errors": self.errors, "metrics": self.metrics}


# ---- calling it ----


def object_in(label):
    """The label as a dictionary, where it is the text of a JSON object; else None."""
    try:
        return json.loads(label) if label.lstrip().startswith("{") else None
    except (ValueError, RecursionError):
        return None


def accepted(function, arguments):
    if takes_any_keyword(function):
        return arguments
    names = {p.name for p in parameters_of(function)}
    return {name: value for name, value in arguments.items() if name in names}


def arguments_of_sample(function, form, request, data_source, i):
    """For functions of one sample: their keyword arguments."""
    prompt, response, label = request["prompts"][i], request["responses"][i], request["labels"][i]
    if form == "response":
        return accepted(function, {"prompt": prompt, "response": response, "label": label})
    if form == "compute_score":
        return accepted(function, verl_arguments(request, data_source, i))
    return {"args": types.SimpleNamespace(), "sample": slime_sample(request, i)}


def verl_arguments(request, data_source, i):
    label = request["labels"][i]
    row = object_in(label) or {}
    if "ground_truth" not in row:
        row = {}
    extra = row.get("extra_info") or {}
    if not isinstance(extra, dict):
        raise Unusable(f"extra_info of its label is a value of type {type(extra).__name__} instead of an object")
    return {"data_source": row.get("data_source", data_source), "solution_str": request["responses"][i],
            "ground_truth": row.get("ground_truth", label),
            "extra_info": {"index": request["groups"][i], "prompt": request["prompts"][i], **extra}}


def slime_sample(request, i):
    return types.SimpleNamespace(prompt=request["prompts"][i], response=request["responses"][i], label=request["labels"][i],
                                 metadata={}, index=i, group_index=request["groups"][i], reward=None)


def value_of(returned):
    """Of a function that is not declared as async, but returns what an await needs."""
    if not inspect.isawaitable(returned):
        return returned

    async def awaited():
        return await returned
    return asyncio.run(awaited())


def call_one_by_one(function, form, request, data_source, result):
    samples = range(len(request["responses"]))

    def started(index):
        seed_for(request, index)
        return function(**arguments_of_sample(function, form, request, data_source, index))

    async def one(index):
        try:
            return await started(index)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # as value_or_error()
            return error

    async def all_of_them():
        return await asyncio.gather(*(one(index) for index in samples))

    if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None)):
        values = asyncio.run(all_of_them())
    else:
        values = [value_or_error(lambda: value_of(started(index))) for index in samples]
    for index, value in enumerate(values):
        result.put(index, value)


def value_or_error(call):
    """What it returns, or raises: also sys.exit(), and what packages raise at the end of a timeout."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        return error


def trl_texts(request):
    """As in TRL, a prompt that is a conversation is a list of messages, and its completion a list with the assistant's
    message."""
    prompts, completions = [], []
    for prompt, response, messages in zip(request["prompts"], request["responses"], request["messages"]):
        prompts.append(json.loads(messages) if messages else prompt)
        completions.append([{"role": "assistant", "content": response}] if messages else response)
    return {"prompts": prompts, "completions": completions}


def arguments_of_batch(function, form, request, data_source, result):
    prompts, responses, labels = request["prompts"], request["responses"], request["labels"]
    if form == "queries":
        queries = [prompt + response for prompt, response in zip(prompts, responses)]
        return {"queries": queries, "prompts": prompts, "labels": labels}
    if form == "compute_scores":
        rows = [verl_arguments(request, data_source, i) for i in range(len(responses))]
        return {"data_sources": [row["data_source"] for row in rows], "solution_strs": responses,
                "ground_truths": [row["ground_truth"] for row in rows], "extra_infos": [row["extra_info"] for row in rows]}
    if form == "samples":
        return {"args": types.SimpleNamespace(), "samples": [slime_sample(request, i) for i in range(len(responses))]}
    arguments = {**trl_texts(request), "label": labels}
    arguments.update({key: column for key, column in columns_of(labels, function).items() if key not in arguments})
    missing = [name for name in columns_needed(function) if name not in arguments]
    if len(missing) > 1:
        raise Unusable(f"needs the columns {', '.join(missing)}; only prompts, completions and label are there, and the keys of "
                       "a label that is a JSON object")
    arguments.update({name: labels for name in missing})  # the one column that it asks for is the reference answer
    arguments["trainer_state"] = types.SimpleNamespace(global_step=request["iteration"])
    arguments["log_extra"] = lambda *_, **__: None
    arguments["log_metric"] = lambda name, value: result.add_metrics(metrics_of({name: value}, ()))
    return arguments


def columns_of(labels, function):
    """The columns of a function in TRL's form that labels hold which are JSON objects: the keys that all of them have."""
    objects = [object_in(label) for label in labels]
    is_object = [row is not None for row in objects]
    takes_columns = takes_any_keyword(function) or any(p.name not in (*TRL_KNOWN, "label") for p in parameters_of(function))
    if not all(is_object):
        if any(is_object) and takes_columns:
            raise Unusable(f"the label of sample {is_object.index(True)} of its batch is a JSON object and that of sample "
                           f"{is_object.index(False)} is none: the keys of labels are columns where all of them are objects")
        return {}
    needed = [name for name in columns_needed(function) if any(name in row for row in objects)]
    for name in needed:
        lacking = [i for i, row in enumerate(objects) if name not in row]
        if lacking:
            raise Unusable(f"needs the column {name}, which the label of sample {lacking[0]} of its batch does not have")
    return {key: [row[key] for row in objects] for key in objects[0] if all(key in row for row in objects)}


def call_with_all(function, form, request, data_source, result):
    arguments = accepted(function, arguments_of_batch(function, form, request, data_source, result))
    value = value_of(function(**arguments))
    if isinstance(value, dict):
        key = next((k for k in ("rewards", "scores") if value.get(k) is not None), None)
        if key is None:
            raise Unusable("it returned a dictionary without rewards or scores")
        metrics = dict(value.get("extra_logs") or {})
        for name, entries in metrics.items():
            entries = plain(entries)
            for entry in entries if isinstance(entries, (list, tuple)) else [entries]:
                result.add_metrics(metrics_of({name: entry}, ()))
        value = plain(value[key])
        if not isinstance(value, (list, tuple)):
            value = [value]
    result.put_all(value)


def seed_for(request, i):
    """What a function draws depends on what it scores, and not on which process does so or what that did before."""
    random.seed(f"{request['seed']}/{request['iteration']}/{request['groups'][i]}/{request['places'][i]}")
    seed = random.getrandbits(31)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(seed)
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(seed)


def score(function, form, request, data_source):
    seed_for(request, 0)
    result = Result(len(request["responses"]))
    if form in ("compute_score", "sample", "response"):
        call_one_by_one(function, form, request, data_source, result)
    else:
        call_with_all(function, form, request, data_source, result)
    return result.as_dict()


# ---- words for what went wrong ----


def described(error):
    """The type, the text, and the last line of the user's own files that was on the way."""
    if isinstance(error, Unusable):
        return str(error)
    folder = os.path.dirname(os.path.abspath(sys.argv[1]))
    place = ""
    for frame in traceback.extract_tb(error.__traceback__):
        if frame.filename.startswith(folder + os.sep):
            place = f" ({os.path.relpath(frame.filename, folder)}:{frame.lineno})"
    if isinstance(error, SyntaxError) and isinstance(error.filename, str):
        place = f" ({os.path.basename(error.filename)}:{error.lineno})"
    traceback.print_exception(type(error), error, error.__traceback__)
    return f"{type(error).__name__}: {text_of(error)}"[:LONGEST] + place


def text_of(error):
    text = value_or_error(lambda: str(error))
    return text if isinstance(text, str) else f"its own text raised {type(text).__name__}"


def main():
    requests, replies = take_protocol()
    path, name, data_source = sys.argv[1:4]

    def say(value):
        replies.write(json.dumps(value, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        replies.flush()

    try:
        function, name, form = choose(load(path), name)
    except Exception as error:
        say({"failure": described(error), "help": help_for(error) or ""})
        return
    say({"ready": {"function": name, "form": form}})
    for line in requests:
        reply = value_or_error(lambda: score(function, form, json.loads(line), data_source))
        say({"failure": described(reply)} if isinstance(reply, BaseException) else reply)


if __name__ == "__main__":
    main()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(0)  # whatever threads the file has left running
