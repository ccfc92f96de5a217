#!/usr/bin/env python3
"""Chat templates by transformers and jinja2 (5.23.0 and 3.1.6 wrote the committed files).

    chat_template_reference.py write DATA                   write tests/golden/text/chat_templates/; DATA holds
                                                            chat_templates/*.jinja
    chat_template_reference.py compare DRIVER [--count N] [--seed S] [--show N]
                                                            random templates, ours (DRIVER: sluice_render_lines) against jinja2

Needs transformers; run.py finds a Python that has it.
"""

import argparse
import copy
import json
import pathlib
import random
import subprocess
import sys
import warnings

HERE = pathlib.Path(__file__).resolve().parent
SOURCE = HERE.parent.parent
sys.path.insert(0, str(HERE))

import random_templates  # noqa: E402


# ---- the reference -------------------------------------------------------------------------------------------------------------


class Reference:
    """Renders as transformers does, at 2024-07-26 14:05:09."""

    def __init__(self):
        import datetime

        from transformers.utils import chat_template_utils

        class FixedClock(datetime.datetime):
            @classmethod
            def now(cls, tz=None):
                return cls(2024, 7, 26, 14, 5, 9)

        chat_template_utils.datetime = FixedClock
        self.utils = chat_template_utils

    def render(self, template, variables):
        """{"text", "generations"}: the bytes that generation blocks cover; or {"error"}."""
        try:
            compiled = self.utils._cached_compile_jinja_template(template)
            blocks, indices = [], []
            with compiled.environment.activate_tracker(blocks, indices):
                for block in compiled.generate(**copy.deepcopy(variables)):  # the indent filter changes a list given to it
                    blocks.append(block)
                    if sum(map(len, blocks)) > 1_000_000:
                        return {"error": "too long"}
                text = "".join(blocks)
            encoded = text.encode()
            bytes_before = lambda index: len(text[:index].encode())
            return {"text": encoded.decode(), "generations": [[bytes_before(begin), bytes_before(end)] for begin, end in indices]}
        except Exception as error:  # whatever Python raises, the template cannot be rendered
            return {"error": f"{type(error).__name__}: {error}"[:200]}


# ---- random comparison ---------------------------------------------------------------------------------------------------------

# What our interpreter refuses on purpose, and says so.
OURS = ("64 bits", "not supported", "is a complex number", "at most 10000 characters", "more than 10000", "steps, the most",
        "of memory, the most")
# What depends on where CPython puts an object.
THEIRS = (" at 0x", "<built-in", "<function", "<class", "too long", "0x7f", "_io.", "StopIteration")


def differs(ours, theirs):
    if "error" in ours and any(text in ours["error"] for text in OURS):
        return False
    if any(text.lower() in json.dumps(theirs).lower() for text in THEIRS):
        return False
    if "error" in ours or "error" in theirs:
        return ("error" in ours) != ("error" in theirs)
    return ours != theirs


def compare(driver, count, seed, show):
    reference = Reference()
    stream = random.Random(seed)
    warnings.simplefilter("ignore", SyntaxWarning)
    generator = random_templates.Generator(stream)
    cases = [{"template": generator.template(), "variables": random_templates.VARIABLES} for _ in range(count)]
    lines = "".join(json.dumps(case) + "\n" for case in cases)
    ours = subprocess.run([driver], input=lines.encode(), stdout=subprocess.PIPE,
                          check=True).stdout.decode().rstrip("\n").split("\n")
    if len(ours) != count:
        print(f"{driver} gave {len(ours)} answers to {count} templates", file=sys.stderr)
        return 1
    different, errors = 0, 0
    for case, line in zip(cases, ours):
        mine, theirs = json.loads(line), reference.render(case["template"], case["variables"])
        errors += "error" in theirs
        if differs(mine, theirs):
            different += 1
            if different <= show:
                print("template", json.dumps(case["template"], ensure_ascii=False), "\n  ours  ",
                      json.dumps(mine, ensure_ascii=False)[:400], "\n  theirs", json.dumps(theirs, ensure_ascii=False)[:400])
    print(f"{count} templates, {errors} of them refused by the reference: {different} differ")
    return 1 if different else 0


# ---- command line --------------------------------------------------------------------------------------------------------------


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    write_command = commands.add_parser("write")
    write_command.add_argument("data", type=pathlib.Path)
    compare_command = commands.add_parser("compare")
    compare_command.add_argument("driver")
    compare_command.add_argument("--count", type=int, default=2000)
    compare_command.add_argument("--seed", type=int, default=1)
    compare_command.add_argument("--show", type=int, default=10)
    arguments = parser.parse_args()
    if arguments.command == "compare":
        return compare(arguments.driver, arguments.count, arguments.seed, arguments.show)
    import chat_template_cases

    chat_template_cases.write(Reference(), arguments.data, SOURCE / "tests" / "golden" / "text" / "chat_templates")
    return 0


if __name__ == "__main__":
    sys.exit(main())
