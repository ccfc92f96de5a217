"""How often each thing that a run did is in its files, so that what stands there twice or not at all is seen."""

import collections
import json
import struct


def event_steps(folder):
    """How often each scalar of each step is in the event files of a run folder."""
    counts = collections.Counter()
    for path in folder.glob("events.out.tfevents.*"):
        content, at = path.read_bytes(), 0
        while at < len(content):
            (length,) = struct.unpack_from("<Q", content, at)
            record = content[at + 12:at + 12 + length]
            assert len(record) == length, f"{path} ends within a record"
            at += 12 + length + 4
            fields = dict(protobuf(record))
            if 5 in fields:
                for _, value in protobuf(fields[5]):
                    counts[(fields.get(2, 0), dict(protobuf(value))[1].decode())] += 1
    return counts


def protobuf(message):
    """(number, value) of each field."""
    at = 0

    def varint():
        nonlocal at
        value = shift = 0
        while True:
            byte = message[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value

    while at < len(message):
        key = varint()
        if key & 7 == 0:
            yield key >> 3, varint()
            continue
        size = {1: 8, 5: 4}.get(key & 7)
        size = varint() if size is None else size
        yield key >> 3, message[at:at + size]
        at += size


def slices(folder):
    """How often each piece of work is in trace.json. Steps, which come together as time has it, count once an iteration and
    node."""
    counts = collections.Counter()
    steps = set()
    for event in json.loads((folder / "trace.json").read_text()):
        if event["ph"] != "X":
            continue
        args = event["args"]
        if "micro_batch" in args:
            counts[(event["name"], args["iteration"], args["micro_batch"], args["tokens"])] += 1
        else:
            steps.add((event["name"], args["iteration"]))
    return counts + collections.Counter(steps)
