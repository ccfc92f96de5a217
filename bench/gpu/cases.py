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
from multiprocessing.connection import wait

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
    alone: bool = True  # others beside it would spoil its figures, or it looks at their answers


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


class Running:
    """A case in its process."""

    def __init__(self, case, limit):
        self.case, self.limit, self.begin = case, limit, time.monotonic()
        self.pipe, theirs = FORK.Pipe(duplex=False)
        self.child = FORK.Process(target=answer, args=(theirs, case.work))
        self.child.start()
        theirs.close()

    def left(self):
        return max(0, self.begin + self.limit - time.monotonic())

    def result(self):
        """What it answered in its time; all that it started is over then."""
        try:
            return self.pipe.recv() if self.pipe.poll() else {"ok": False, "why": f"not done in {self.limit:.0f} s"}
        except EOFError:
            self.child.join(5)
            return {"ok": False, "why": f"ended without an answer, with {self.child.exitcode}"}
        finally:
            self.end()

    def end(self):
        for kill, of in ((os.killpg, self.child.pid), (os.kill, self.child.pid)):
            try:
                kill(of, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.child.join()
        self.pipe.close()


def run_cases(part, cases, seconds, answers, show, at_once=1):
    """Puts the answer of each case into `answers`, {name: answer}, where later cases find it; `show` gets it as a line as it
    comes. What the part has no time left for has failed. Those that need not be alone run beside each other, so many at once."""
    ends, running = time.monotonic() + seconds, []

    def told(case, begin, result):
        answers[case.name] = {"part": part, "case": case.name, "seconds": round(time.monotonic() - begin, 2), **result}
        show(json.dumps(answers[case.name]))

    def collect(most):
        """Until no more than so many run."""
        while len(running) > most:
            wait([each.pipe for each in running], timeout=min(each.left() for each in running))
            for each in [each for each in running if each.pipe.poll() or each.left() == 0]:
                running.remove(each)
                told(each.case, each.begin, each.result())

    for case in cases:
        collect(0 if case.alone else at_once - 1)
        limit = min(case.seconds, ends - time.monotonic())
        if limit > 0:
            running.append(Running(case, limit))
        else:
            told(case, time.monotonic(), {"ok": False, "why": f"the {seconds} s of {part} were over"})
        if case.alone:
            collect(0)
    collect(0)


def output_of(words, **options):
    """What a program prints on both outputs; Failed where it does not end with 0."""
    done = subprocess.run([str(word) for word in words], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          errors="replace", **options)
    if done.returncode != 0:
        raise Failed(f"{words[0]} ended with {done.returncode}: {done.stdout[-LAST_CHARACTERS:]}")
    return done.stdout
