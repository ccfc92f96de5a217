"""Writes exact_sums.txt: lines of numbers, first their sum rounded once (math.fsum), then they."""

import math
import random

rng = random.Random(19)


def number(spread):
    return math.ldexp(rng.uniform(-1, 1), rng.randint(-spread, spread))


def lines():
    for spread in (0, 1, 8, 40, 300, 900):
        for count in (1, 2, 3, 7, 30):
            for _ in range(4):
                yield [number(spread) for _ in range(count)]
    for _ in range(30):  # what is left of numbers that take each other away
        some = [number(200) for _ in range(6)]
        rest = [number(60) * 2.0**-120 for _ in range(2)]
        both = some + [-x for x in some] + rest
        rng.shuffle(both)
        yield both
    for base in (1.0, 2.0**52, 2.0**60, 2.0**-1022):  # ties, and almost ties
        half = math.ulp(base) / 2
        for more in (0.0, 5e-324, -5e-324, half, -half):
            yield [base, half, more]
            yield [-base, -half, more]
    for _ in range(20):  # subnormal
        yield [math.ldexp(rng.randint(-(2**40), 2**40), -1074) for _ in range(5)]
    yield [5e-324] * 3


with open(__file__.replace(".py", ".txt"), "w", encoding="utf-8") as out:
    for line in lines():
        out.write(" ".join(float.hex(x) for x in [math.fsum(line)] + line) + "\n")
