"""Single operations, decoding and training, beside the card's peaks and beside transformers where that can be imported. On a
device that is no GPU everything is tiny: to see that it works."""

import pathlib
import tempfile

import measures
import peaks
from cases import Case

SECONDS = 480
# Name, seconds, what is measured and its sizes. Of a model most of the time is drawing random weights.
LARGE = [
    *((f"attention, {count} x {context}", 30, measures.attention, dict(sequences=count, context=context))
      for count, context in ((1, 4096), (64, 1024), (64, 4096), (256, 1024))),
    *((f"product, {rows} x {inputs} x {outputs}", 30, measures.product, dict(rows=rows, inputs=inputs, outputs=outputs))
      for rows, inputs, outputs in ((1, 4096, 4096), (1, 4096, 28672), (1, 14336, 4096), (16, 4096, 4096), (16, 4096, 28672))),
    ("log-probabilities", 40, measures.logprobs, dict(actions=16384, hidden=2048, vocabulary=131072, backward=False)),
    ("log-probabilities, backward", 40, measures.logprobs, dict(actions=16384, hidden=2048, vocabulary=131072, backward=True)),
    ("publication, 0.5b", 40, measures.publication, dict(size="0.5b")),
    ("decoding, 1.5b", 80, measures.decoding, dict(size="1.5b", batches=[1, 16, 64], context=512, steps=64)),
    ("training, 1.5b", 80, measures.training, dict(size="1.5b", tokens=8192, length=1024)),
    ("publication, 8b", 120, measures.publication, dict(size="8b")),
    ("decoding, 8b", 160, measures.decoding, dict(size="8b", batches=[1, 64, 256], context=512, steps=32)),
]
TINY = [
    ("attention, 3 x 40", 30, measures.attention, dict(sequences=3, context=40)),
    ("product, 3 x 64 x 96", 30, measures.product, dict(rows=3, inputs=64, outputs=96)),
    ("log-probabilities", 30, measures.logprobs, dict(actions=64, hidden=32, vocabulary=97, backward=False)),
    ("log-probabilities, backward", 30, measures.logprobs, dict(actions=64, hidden=32, vocabulary=97, backward=True)),
    ("publication, tiny", 30, measures.publication, dict(size="tiny")),
    ("decoding, tiny", 30, measures.decoding, dict(size="tiny", batches=[1, 2], context=16, steps=4)),
    ("training, tiny", 30, measures.training, dict(size="tiny", tokens=64, length=16)),
]


def cases(device, answers):
    def work_of(measure, sizes):
        with tempfile.TemporaryDirectory(prefix="sluice-") as folder:
            return measure(device, answers["peaks"], pathlib.Path(folder), **sizes)

    return [
        Case("peaks", 60, lambda: peaks.measure(device)),
        *(Case(name, seconds, lambda measure=measure, sizes=sizes: work_of(measure, sizes))
          for name, seconds, measure, sizes in (LARGE if device.is_gpu else TINY)),
    ]
