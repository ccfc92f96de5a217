"""Runs tests that are statements, in a sandbox of its own. The solution is in another one (code_server.py), out of reach.

usage: judge.py LIMITS     a line {"tests": ["assert f(1) == 2", ...]} on stdin says what is asked

Says "started", then for each test "passed" or "failed". In between "ask REQUEST" wants something of the solution; the next line
on stdin is its answer, or "gone" (as JSON). Only data comes from there (sluice_values.py), and references to objects of the
solution (Remote), which take part in no operation with data. So what is equal to what a test expects is the same value.
"""

import ast
import builtins
import importlib
import json
import sys
import types

from runner import set_limits
from sluice_values import Values, change, has_changeable, is_builtin_exception, take_channel

# Modules whose functions a test may use by a name that only the solution imported.
LIBRARY = {"bisect", "cmath", "collections", "copy", "datetime", "decimal", "fractions", "functools", "heapq", "itertools",
           "json", "math", "operator", "random", "re", "statistics", "string", "time", "typing", "_bisect", "_collections",
           "_functools", "_heapq", "_operator", "_random", "_statistics"}
ALIASES = {"np": "numpy", "pd": "pandas", "dt": "datetime"}

# Operations of two operands, and those of one that tell the tests about an object.
BINARY = ["add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "lshift", "rshift", "and", "or", "xor"]
ORDER = ["lt", "le", "gt", "ge"]
UNARY = ["neg", "pos", "abs", "invert", "index"]
ASKED = {"len": int, "hash": int, "bool": bool, "str": str, "repr": str, "int": int, "float": float, "complex": complex,
         "iter": None, "reversed": None, "round": None, "format": str}

DESCRIBING = {"__name__", "__qualname__", "__dict__", "__annotations__"}


class Remote:
    """An object of the solution."""

    __slots__ = ("_sluice_judge", "_sluice_number", "__weakref__")

    def __init__(self, judge, number):
        object.__setattr__(self, "_sluice_judge", judge)
        object.__setattr__(self, "_sluice_number", number)

    def __call__(self, *values, **keywords):
        return self._sluice_judge.call(self, values, keywords)

    def __getattr__(self, name):
        # A protocol, such as numpy's __array_interface__, is no question of a test.
        if name.startswith("__") and name not in DESCRIBING:
            raise AttributeError(name)
        return self._sluice_judge.ask("get", self, name)

    def __setattr__(self, name, value):
        self._sluice_judge.ask("set", self, name, value)

    def __delattr__(self, name):
        self._sluice_judge.ask("delete", self, name)

    def __getitem__(self, key):
        return self._sluice_judge.ask("getitem", self, key)

    def __setitem__(self, key, value):
        self._sluice_judge.ask("setitem", self, key, value)

    def __delitem__(self, key):
        self._sluice_judge.ask("delitem", self, key)

    def __contains__(self, item):
        return bool(self._sluice_judge.ask("contains", self, only_remote(item, "in")))

    def __next__(self):
        return self._sluice_judge.ask("next", self)

    def __eq__(self, other):
        return isinstance(other, Remote) and bool(self._sluice_judge.ask("eq", self, other))

    def __ne__(self, other):
        return not isinstance(other, Remote) or bool(self._sluice_judge.ask("ne", self, other))

    def __enter__(self):
        return self._sluice_judge.ask("get", self, "__enter__")()

    def __exit__(self, kind, error, trace):
        self._sluice_judge.ask("get", self, "__exit__")(None, None, None)  # whose answer could swallow an AssertionError

    def __instancecheck__(self, value):
        return isinstance(value, Remote) and bool(self._sluice_judge.ask("isinstance", value, self))

    def __subclasscheck__(self, value):
        return isinstance(value, Remote) and bool(self._sluice_judge.ask("issubclass", value, self))


def only_remote(value, operation):
    if not isinstance(value, Remote):
        raise TypeError(f"{operation} between an object of the solution and data of the test: it could be equal to everything")
    return value


def binary(name, swapped=False):
    def method(self, other, *more):
        values = [only_remote(value, name) for value in (other, *more)]
        left, right = (values[0], self) if swapped else (self, values[0])
        return self._sluice_judge.ask(f"__{name}__" if name in ("and", "or") else name, left, right)
    return method


def unary(name, kind=None):
    def method(self, *values):
        value = self._sluice_judge.ask(name, self, *values)
        if kind is not None and type(value) is not kind:
            raise TypeError(f"{name} of an object of the solution is no {kind.__name__}")
        return value
    return method


for operation in [*BINARY, *ORDER]:
    setattr(Remote, f"__{operation}__", binary(operation))
for operation in BINARY:
    setattr(Remote, f"__r{operation}__", binary(operation, swapped=True))
for operation in UNARY:
    setattr(Remote, f"__{operation}__", unary(operation))
for operation, kind_of_answer in ASKED.items():
    setattr(Remote, f"__{operation}__", unary(operation, kind_of_answer))


class Judge(Values):
    """Asks the solution, and answers its calls of functions of the tests."""

    def __init__(self, channel):
        self.channel = channel
        self.remotes, self.exceptions, self.functions = {}, {}, []

    def ask(self, what, *values, **keywords):
        return self.decode(self.reply(what, values, keywords)["value"])

    def call(self, function, values, keywords):
        reply = self.reply("call", (function, *values), keywords)
        given = [*values, *keywords.values()]
        if has_changeable(given):
            for old, new in zip(given, reply.get("changed", [])):
                change(old, self.decode(new))
        return self.decode(reply["value"])

    def reply(self, what, values, keywords):
        self.channel.send("ask ", {"do": what, "values": [self.encode(value) for value in values],
                                   "keywords": {name: self.encode(value) for name, value in keywords.items()}})
        while True:
            message = self.channel.receive()
            if not isinstance(message, dict):
                raise RuntimeError("the solution has ended")
            if "call" in message:
                self.channel.send("ask ", self.called(message))
            elif "raised" in message:
                kind = self.exception(message["raised"])
                # An end of iteration out of a call would end a loop of the test instead of failing it.
                if issubclass(kind, (StopIteration, StopAsyncIteration, GeneratorExit)) and what != "next":
                    kind = RuntimeError
                raise kind(*(self.decode(value) for value in message["arguments"]))
            else:
                return message

    def called(self, message):
        try:
            values = [self.decode(value) for value in message["values"]]
            keywords = {name: self.decode(value) for name, value in message["keywords"].items()}
            return {"value": self.encode(self.functions[message["call"]](*values, **keywords))}
        except Exception as error:
            kind = next((base for base in type(error).__mro__ if is_builtin_exception(base)), Exception)
            return {"raised": [kind.__name__], "arguments": [str(error)]}

    def exception(self, chain):
        *own, name = chain
        kind = getattr(builtins, name, None)
        if not (isinstance(kind, type) and issubclass(kind, BaseException)):
            kind = Exception
        for own_name, number in reversed(own):
            kind = self.exceptions.setdefault(number, type(own_name, (kind,), {"__module__": "solution"}))
        return kind

    def reference(self, value):
        if isinstance(value, Remote):
            return ["object", value._sluice_number]
        if getattr(builtins, getattr(value, "__name__", ""), None) is value:
            return ["builtin", value.__name__]
        for number, kind in self.exceptions.items():
            if kind is value:
                return ["object", number]
        if not callable(value):
            return super().reference(value)
        self.functions.append(value)
        return ["function", len(self.functions) - 1]

    def resolve(self, kind, payload):
        if kind == "object":
            return self.remotes.setdefault(payload, Remote(self, payload))
        if kind == "coroutine":
            return self.awaited(Remote(self, payload))
        if kind == "exception":
            return self.exception(payload)
        if kind == "function":
            return self.functions[payload]
        return super().resolve(kind, payload)

    async def awaited(self, coroutine):
        return self.ask("await", coroutine)

    def named(self, name):
        """What the solution calls so: Python's own module or function where it has only imported it."""
        value = self.reply("name", [name], {})["value"]
        kind = value[0] if isinstance(value, list) else None
        if kind == "module" and value[1] in (name, ALIASES.get(name)):
            return importlib.import_module(value[1])
        if kind == "library":
            module, own_name, value = value[1]
            if own_name == name and module in LIBRARY:
                return getattr(importlib.import_module(module), name)
        return self.decode(value)


def names_in(tests):
    """Of all tests: the names that they use and do not set themselves."""
    used, own = set(), set()
    for test in tests:
        try:
            nodes = list(ast.walk(ast.parse(test)))
        except (SyntaxError, ValueError, RecursionError):
            continue
        for node in nodes:
            if isinstance(node, ast.Name):
                (used if isinstance(node.ctx, ast.Load) else own).add(node.id)
            elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                own.add(node.name)
            elif isinstance(node, ast.arg):
                own.add(node.arg)
            elif isinstance(node, ast.alias):
                own.add((node.asname or node.name).split(".")[0])
    return used - own


class Names(dict):
    """The globals of the tests. What they have not set themselves is Python's own, or the solution's."""

    def __init__(self, judge, tests):
        super().__init__({"__name__": "tests", "__builtins__": builtins})
        self.judge = judge
        used = names_in(tests)
        # A solution may be asked for a function by the name of one of Python's own; then the tests name nothing else.
        self.of_solution = used if len(used) == 1 else set()

    def __missing__(self, name):
        if hasattr(builtins, name) and name not in self.of_solution:
            raise KeyError(name)
        try:
            return self.judge.named(name)
        except KeyError:
            raise KeyError(name) from None


class Solution(types.ModuleType):
    """For tests that say "from solution import f"."""

    def __init__(self, judge):
        super().__init__("solution")
        self.__dict__["_judge"] = judge

    def __getattr__(self, name):
        try:
            return self._judge.named(name)
        except KeyError:
            raise AttributeError(name) from None


def passes(test, names):
    try:
        exec(compile(test, "test.py", "exec"), names)
        return True
    except BaseException:  # SystemExit too
        return False


def main():
    set_limits(json.loads(sys.argv[1]))
    sys.stdout.write("started\n")
    sys.stdout.flush()
    channel = take_channel()
    tests = channel.receive()["tests"]
    judge = Judge(channel)
    names = Names(judge, tests)
    sys.modules["solution"] = Solution(judge)
    for test in tests:
        passed = passes(test, names)
        channel.out.write(b"passed\n" if passed else b"failed\n")
        channel.out.flush()


if __name__ == "__main__":
    main()
