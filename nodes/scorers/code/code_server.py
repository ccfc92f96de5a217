"""The solution's side of tests that are statements: does what code_judge.py asks, with the objects of the solution.

A request is {"do": WHAT, "values": [...], "keywords": {...}}, the answer {"value": ...} or {"raised": [...], "arguments": [...]}.
While it works on one it may ask for a call of a function of the tests, {"call": NUMBER, "values": [...]}, which is answered
likewise.
"""

import builtins
import operator
import types

from sluice_values import Values, has_changeable, is_builtin_exception

MODULE = "solution"


def awaited(coroutine):
    import asyncio
    return asyncio.run(coroutine)


DEEDS = {
    "call": lambda function, *values, **keywords: function(*values, **keywords),
    "get": getattr, "set": setattr, "delete": delattr,
    "len": len, "iter": iter, "next": next, "hash": hash, "bool": bool, "str": str, "repr": repr, "format": format,
    "int": int, "float": float, "complex": complex, "round": round, "reversed": reversed, "divmod": divmod,
    "isinstance": isinstance, "issubclass": issubclass, "await": awaited,
}


def chain_of(kind, reference):
    """An exception class as the other side can build it: the solution's classes, then the first that is Python's own."""
    chain = []
    for base in kind.__mro__:
        if is_builtin_exception(base):
            return [*chain, base.__name__]
        chain.append([base.__name__, reference(base)])
    return [*chain, "Exception"]


class Server(Values):
    own_module = MODULE

    def __init__(self, channel, names):
        self.channel, self.names = channel, names
        self.objects, self.numbers = [], {}

    def serve(self):
        while True:
            self.answer(self.channel.receive())

    def answer(self, request):
        try:
            self.channel.send("", self.done(request))
        except EOFError:
            raise
        except BaseException as error:  # SystemExit too
            self.channel.send("", self.raised(error))

    def done(self, request):
        values = [self.decode(value) for value in request["values"]]
        keywords = {name: self.decode(value) for name, value in request.get("keywords", {}).items()}
        if request["do"] == "name":
            return {"value": self.named(values[0])}
        do = DEEDS.get(request["do"]) or getattr(operator, request["do"])
        reply = {"value": self.encode(do(*values, **keywords))}
        given = [*values[1:], *keywords.values()]
        if request["do"] == "call" and has_changeable(given):
            reply["changed"] = [self.encode(value) for value in given]
        return reply

    def raised(self, error):
        try:
            arguments = [self.encode(value) for value in error.args]
        except BaseException:
            arguments = []
        return {"raised": chain_of(type(error), self.number), "arguments": arguments}

    def named(self, name):
        """A global of the solution; what it has only imported is named, so that the tests use their own."""
        value = self.names[name]
        if isinstance(value, types.ModuleType):
            return ["module", value.__name__]
        module = getattr(value, "__module__", None)
        if callable(value) and isinstance(module, str) and module != MODULE and getattr(value, "__name__", None) == name:
            return ["library", [module, name, self.encode(value)]]
        return self.encode(value)

    def number(self, value):
        if id(value) not in self.numbers:
            self.numbers[id(value)] = len(self.objects)
            self.objects.append(value)
        return self.numbers[id(value)]

    def reference(self, value):
        if isinstance(value, Callback):
            return ["function", value.number]
        if isinstance(value, type) and issubclass(value, BaseException):
            return ["exception", chain_of(value, self.number)]
        return ["coroutine" if isinstance(value, types.CoroutineType) else "object", self.number(value)]

    def resolve(self, kind, payload):
        if kind == "object":
            return self.objects[payload]
        if kind == "builtin":
            return getattr(builtins, payload)
        if kind == "function":
            return Callback(self, payload)
        return super().resolve(kind, payload)


class Callback:
    """A function of the tests, such as a key for sorting."""

    def __init__(self, server, number):
        self.server, self.number = server, number

    def __call__(self, *values, **keywords):
        server = self.server
        server.channel.send("", {"call": self.number, "values": [server.encode(value) for value in values],
                                 "keywords": {name: server.encode(value) for name, value in keywords.items()}})
        while True:
            message = server.channel.receive()
            if "do" in message:
                server.answer(message)
            elif "raised" in message:
                kind = getattr(builtins, message["raised"][-1], Exception)
                raise kind(*(server.decode(value) for value in message["arguments"]))
            else:
                return server.decode(message["value"])
