"""Cases, each in a process and with a time of its own: one that fails, hangs or takes the device with it ends alone, and the
others go on.

A case is a name, its seconds, and a function that returns its figures, a dict. It says that it failed by Failed, and that it
has nothing to measure by LeftOut, which only a device that is no GPU may. Each gives one line of JSON as soon as it is over."""

import dataclasses
import json
import multiprocessing
import os
import signal
import subprocess
import time
import traceback
from collections.abc import Callable

FORK = multiprocessing.get_context("fork")
LAST_CHARACTERS = 1500  # of what a program said before it failed


class Failed(Exception):
    pass


class LeftOut(Exception):
    pass


@dataclasses.dataclass
class Case:
    name: str
    seconds: float
    work: Callable[[], dict]


def answer(pipe, work):
    os.setsid()  # so that all that it starts can be ended with it
    try:
        pipe.send({"ok": True, **work()})
    except LeftOut as why:
        pipe.send({"ok": None, "why": str(why)})
    except Failed as why:
        pipe.send({"ok": False, "why": str(why)})
    except BaseException:  # SystemExit of what the benches share, too
        pipe.send({"ok": False, "why": traceback.format_exc()[-LAST_CHARACTERS:]})


def limited(seconds, work):
    """What the work answers within so many seconds."""
    ours, theirs = FORK.Pipe(duplex=False)
    child = FORK.Process(target=answer, args=(theirs, work))
    child.start()
    theirs.close()
    try:
        if not ours.poll(seconds):
            return {"ok": False, "why": f"not done in {seconds:.0f} s"}
        return ours.recv()
    except EOFError:
        child.join(5)
        return {"ok": False, "why": f"ended without an answer, with {child.exitcode}"}
    finally:
        for kill, of in ((os.killpg, child.pid), (os.kill, child.pid)):
            try:
                kill(of, signal.SIGKILL)
            except ProcessLookupError:
                pass
        child.join()


def run_cases(part, cases, seconds, answers, show):
    """Puts the answer of each case into `answers`, {name: answer}, where later cases find it; `show` gets it as a line as it
    comes. What the part has no time left for has failed."""
    ends = time.monotonic() + seconds
    for case in cases:
        begin = time.monotonic()
        limit = min(case.seconds, ends - begin)
        result = limited(limit, case.work) if limit > 0 else {"ok": False, "why": f"the {seconds} s of {part} were over"}
        answers[case.name] = {"part": part, "case": case.name, "seconds": round(time.monotonic() - begin, 2), **result}
        show(json.dumps(answers[case.name]))


def output_of(words, **options):
    """What a program prints on both outputs; Failed where it does not end with 0."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace", **options)
    if done.returncode != 0:
        raise Failed(f"{words[0]} ended with {done.returncode}: {done.stdout[-LAST_CHARACTERS:]}")
    return done.stdout
