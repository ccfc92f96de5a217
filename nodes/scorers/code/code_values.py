"""What travels between the process of a solution (code_runner.py) and that of its tests (code_judge.py): data, as JSON.

Data are the values of Python's own types: numbers, texts, lists, dictionaries and the like. The other side builds them anew, as
exactly that type, so that nothing that a solution overrides comes with them. All else stays where it is; the other side gets a
reference, which each side makes and resolves in its own way.
"""

import builtins
import collections
import importlib
import json
import os

EXACT_IN_JSON = 1 << 53
CHANGEABLE = (list, dict, set, bytearray, collections.deque)
SEQUENCES = {kind.__name__: kind for kind in (list, tuple, set, frozenset, collections.deque)}
MAPPINGS = {kind.__name__: kind for kind in (dict, collections.OrderedDict, collections.Counter)}
NUMPY_KINDS = "biufcU"  # of its arrays: truth values, numbers, texts

# Of other types: the arguments that build an equal value.
PARTS = {
    "builtins.complex": lambda v: [v.real, v.imag],
    "builtins.range": lambda v: [v.start, v.stop, v.step],
    "builtins.slice": lambda v: [v.start, v.stop, v.step],
    "fractions.Fraction": lambda v: [v.numerator, v.denominator],
    "decimal.Decimal": lambda v: [str(v)],
    "datetime.datetime": lambda v: [v.year, v.month, v.day, v.hour, v.minute, v.second, v.microsecond],
    "datetime.date": lambda v: [v.year, v.month, v.day],
    "datetime.time": lambda v: [v.hour, v.minute, v.second, v.microsecond],
    "datetime.timedelta": lambda v: [v.days, v.seconds, v.microseconds],
}


def is_builtin_exception(kind):
    return issubclass(kind, BaseException) and getattr(builtins, kind.__name__, None) is kind


class Values:
    """Encodes and decodes values. `own_module` names the module whose classes are not data, whatever they derive from."""

    own_module = None

    def reference(self, value):
        """What stands for a value that is no data: [kind, payload]."""
        raise TypeError(f"a value of type {type(value).__name__} is no data")

    def resolve(self, kind, payload):
        """The value of such a reference."""
        raise ValueError(f"not a value: {kind!r}")

    def encode(self, value):
        kind = type(value)
        name = f"{kind.__module__}.{kind.__qualname__}"
        if value is None or kind is bool:
            return value
        if kind.__module__ == self.own_module and not self.is_named_tuple(value):
            return self.reference(value)
        if isinstance(value, str):
            return str.__str__(value)
        if isinstance(value, int):
            number = int(value)
            return number if abs(number) < EXACT_IN_JSON else ["int", hex(number)]
        if isinstance(value, float):
            return float(value)
        if isinstance(value, dict):
            mapping = kind.__name__ if kind in MAPPINGS.values() else "dict"
            return [mapping, [[self.encode(k), self.encode(v)] for k, v in dict.items(value)]]
        if self.is_named_tuple(value):
            return ["namedtuple", [kind.__name__, list(kind._fields), [self.encode(v) for v in value]]]
        for sequence, base in SEQUENCES.items():
            if isinstance(value, base):
                return [sequence, [self.encode(v) for v in value]]
        if isinstance(value, (bytes, bytearray)):
            return ["bytes" if isinstance(value, bytes) else "bytearray", bytes(value).hex()]
        if name in PARTS:
            return [name, [self.encode(part) for part in PARTS[name](value)]]
        if kind.__module__ == "numpy":
            return self.of_numpy(value)
        return self.reference(value)

    def decode(self, value):
        if not isinstance(value, list):
            return value
        kind, payload = value
        if kind == "int":
            return int(payload, 16)
        if kind in MAPPINGS:
            return MAPPINGS[kind]({self.decode(k): self.decode(v) for k, v in payload})
        if kind in SEQUENCES:
            return SEQUENCES[kind](self.decode(v) for v in payload)
        if kind == "namedtuple":
            name, fields, values = payload
            return collections.namedtuple(name, fields)(*(self.decode(v) for v in values))
        if kind in ("bytes", "bytearray"):
            return getattr(builtins, kind).fromhex(payload)
        if kind in PARTS:
            module, name = kind.split(".")
            return getattr(importlib.import_module(module), name)(*(self.decode(part) for part in payload))
        if kind == "numpy":
            dtype, shape, values = payload
            array = numpy_array(self.decode(values), dtype)
            return array.reshape(shape) if shape else array[()]
        return self.resolve(kind, payload)

    def is_named_tuple(self, value):
        fields = getattr(type(value), "_fields", None)
        return isinstance(value, tuple) and isinstance(fields, tuple) and type(value).__bases__ == (tuple,)

    def of_numpy(self, value):
        dtype = getattr(value, "dtype", None)
        if dtype is None or dtype.kind not in NUMPY_KINDS or type(value).__name__ in ("matrix", "MaskedArray"):
            return self.reference(value)
        return ["numpy", [dtype.str, list(value.shape), self.encode(value.flatten().tolist() if value.shape else value.tolist())]]


def numpy_array(values, dtype):
    import numpy
    if numpy.dtype(dtype).kind not in NUMPY_KINDS:
        raise ValueError(f"not an array of data: {dtype!r}")
    return numpy.array(values, dtype=dtype)


def has_changeable(values):
    """Whether a call could change one of the values, as an in-place sort does."""
    return any(isinstance(value, CHANGEABLE) or isinstance(value, tuple) and has_changeable(value) for value in values)


def change(old, new):
    """Makes `old` what the same argument is after a call, in place as far as it is the same container."""
    if type(old) is not type(new):
        return new
    if isinstance(old, (list, collections.deque)):
        pairs = zip(list(old), new) if len(old) == len(new) else ((item, item) for item in new)
        items = [change(a, b) for a, b in pairs]
        old.clear()
        old.extend(items)
    elif isinstance(old, tuple):
        return tuple(change(a, b) for a, b in zip(old, new)) if len(old) == len(new) else new
    elif isinstance(old, dict):
        items = {key: change(old[key], value) if key in old else value for key, value in new.items()}
        old.clear()
        old.update(items)
    elif isinstance(old, set):
        old.clear()
        old.update(new)
    elif isinstance(old, bytearray):
        old[:] = new
    else:
        return new
    return old


class Channel:
    """Lines of JSON out and in."""

    def __init__(self, lines, out):
        self.lines, self.out = lines, out

    def send(self, mark, message):
        self.out.write((mark + json.dumps(message) + "\n").encode())
        self.out.flush()

    def receive(self):
        line = self.lines.readline()
        if not line:
            raise EOFError("the other side has ended")
        return json.loads(line)


def take_channel():
    """Our ends of stdin and stdout; what is run here reads nothing, and what it prints goes nowhere."""
    lines, out = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)
    return Channel(lines, out)
