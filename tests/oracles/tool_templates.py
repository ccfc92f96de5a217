#!/usr/bin/env python3
"""Chat templates of published models, and ours: with tools our code does with each what transformers does.

    tool_templates.py DRIVER DATA                    DRIVER: sluice_tool_chat_lines
    tool_templates.py DRIVER DATA --tokens TOKENS    also TOKENS: sluice_tool_tokens_lines

Rendered: whole conversations give transformers' text, or are refused by both. Read: the calls that transformers writes for a
message are what our code reads in them. Followed: what our code puts between two turns is what transformers writes there.
Trained: of a sample of three turns, whose tokens are none that a tokenizer would give and whose thinking some templates would
leave out, every sampled token is there as it was sampled, and in between are the tokens of what transformers writes.

Needs transformers and tokenizers (run.py finds a Python that has them), and the wheels that published_templates.py reads.
"""

import argparse
import copy
import json
import os
import pathlib
import re
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

import chat_template_cases  # noqa: E402
import published_templates  # noqa: E402
from chat_template_reference import Reference  # noqa: E402

SPECIAL_TOKENS = chat_template_cases.SPECIAL_TOKENS
FIELDS = {"city": "string", "days": "integer", "exact": "boolean", "ratio": "number", "names": "array", "place": "object"}


def tool(name, fields):
    properties = {key: {"type": kind, "description": f"the {key}"} for key, kind in fields.items()}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}",
                                             "parameters": {"type": "object", "properties": properties, "required": []}}}


TOOLS = [tool("get_weather", FIELDS), tool("now", {})]
SYSTEM, USER = {"role": "system", "content": "Be terse."}, {"role": "user", "content": "Weather?"}
EVERYTHING = {"city": "Zürich \"Nord\", it's\\ <b>&", "days": 3, "exact": True, "ratio": -1.5, "names": ["a", "b c"],
              "place": {"x": 1, "y": "two"}}
TURNS = {  # the calls of a turn
    "all kinds": [("get_weather", EVERYTHING)],
    "two values": [("get_weather", {"city": "Bern", "days": 3})],
    "no values": [("now", {})],
    "several": [("get_weather", {"city": "Bern", "days": 3}), ("now", {}), ("get_weather", {"city": "Rom"})],
}


def call(name, arguments, number, form):
    id = f"functions.{name}:{number}" if form and form.get("name_is_id") else f"call0000{number}"
    text = form and form["wants_text"]
    return {"type": "function", "id": id,
            "function": {"name": name, "arguments": json.dumps(arguments, ensure_ascii=False) if text else arguments}}


def assistant(calls, form, reasoning=None, first=0):
    message = {"role": "assistant", "content": "", "tool_calls": [call(*one, first + i, form) for i, one in enumerate(calls)]}
    return {**message, "reasoning_content": reasoning} if reasoning else message


def answer(message, text):
    one = message["tool_calls"][0]
    return {"role": "tool", "name": one["function"]["name"], "tool_call_id": one["id"], "content": text}


class Driver:
    def __init__(self, *command):
        self.command = [str(part) for part in command]

    def ask(self, questions):
        lines = "".join(json.dumps(question) + "\n" for question in questions)
        done = subprocess.run(self.command, input=lines.encode(), stdout=subprocess.PIPE, check=True)
        answers = [json.loads(line) for line in done.stdout.decode().rstrip("\n").split("\n")]
        assert len(answers) == len(questions), f"{len(answers)} answers to {len(questions)} questions"
        return answers


def conversations(form):
    """Of every kind that a run with tools has: (messages, options)."""
    one, thinking = assistant(TURNS["two values"], form), assistant(TURNS["all kinds"], form, "Which tool?")
    said = {"role": "assistant", "content": "Sunny.", "reasoning_content": "So."}
    inline = {"role": "assistant", "content": "<think>\nSo.\n</think>\n\nSunny."}
    exchange = [USER, thinking, answer(thinking, "sunny"), said]
    chats = [[USER], [SYSTEM, USER], [SYSTEM, USER, said, USER], [USER, inline, USER], [USER, one], [USER, one, answer(one, "4")],
             exchange, [SYSTEM, *exchange, USER], [USER, assistant(TURNS["several"], form), answer(one, "4"), answer(one, "5")],
             [USER, assistant(TURNS["no values"], form), answer(one, "{\"a\": 1}")],
             [*exchange, USER, one, answer(one, "rain"), said]]
    options = [{"add_generation_prompt": True}, {"add_generation_prompt": True, "tools": TOOLS}, {"tools": TOOLS},
               {"add_generation_prompt": True, "tools": TOOLS, "enable_thinking": False},
               {"add_generation_prompt": True, "tools": TOOLS, "enable_thinking": True}]
    return [(copy.deepcopy(chat), option) for chat in chats for option in options]


def as_question(messages, options):
    variables = {key: value for key, value in options.items() if key not in ("add_generation_prompt", "tools")}
    return {"messages": messages, "add_generation_prompt": options.get("add_generation_prompt", False),
            "tools": options.get("tools"), "variables": variables}


class Checked:
    """One template: what transformers makes of it, and what is wrong with ours."""

    def __init__(self, name, template, renderer):
        self.name, self.template, self.renderer = name, template, renderer
        self.form, self.problems = None, []

    def render(self, messages, prompt=False, tools=TOOLS):
        return self.renderer.render(self.template, messages, {"add_generation_prompt": prompt, "tools": tools}).get("text")

    def question(self, **more):
        return {"template": self.template, "special_tokens": SPECIAL_TOKENS, "tools": TOOLS, "renders": [], "turns": [], **more}

    def complain(self, what):
        self.problems.append(what)

    # -- rendered

    def check_renders(self, answers, cases):
        for (messages, options), mine in zip(cases, answers):
            theirs = self.renderer.render(self.template, messages, options)
            if ("error" in theirs) != ("error" in mine) or theirs.get("text") != mine.get("text"):
                self.complain(f"renders {json.dumps(messages)[:300]} with {list(options)} as {str(mine)[:300]}, transformers "
                              f"as {str(theirs)[:300]}")

    # -- read and followed

    def said(self, message):
        """What a model would have written for the message: from the prompt on, up to what ends it."""
        text, prompt = self.render([USER, message]), self.render([USER], True)
        if text is None or prompt is None:
            return None
        begin = len(os.path.commonprefix([text, prompt.rstrip()]))
        if begin < len(prompt.rstrip()):  # within a mark
            opened = max(text.rfind("<", 0, begin), text.rfind("[", 0, begin))
            begin = opened if opened >= 0 and not re.search(r"[>\]]", text[opened:begin]) else begin
        plain = self.render([USER, {"role": "assistant", "content": "PLAIN"}]) or "PLAIN"
        said, end = text[begin:].rstrip(), plain[plain.rfind("PLAIN") + len("PLAIN"):].strip()
        said = said.removesuffix(end)
        opening, closing = self.form["thinking"]
        if prompt.rstrip().endswith(opening) and closing not in said:  # left out, but a model has thought
            said = f"So.\n{closing}\n\n{said}"
        return said

    def turns(self):
        """{what: (calls, question)}"""
        turns = {}
        for what, calls in TURNS.items():
            said = self.said(assistant(calls, self.form))
            if said is not None:
                turns[what] = (calls, {"text": said, "answers": ["SUNNY"], "ends": ["", self.last_mark(said)]})
        said = self.said(assistant(TURNS["two values"], self.form, "Which tool?"))
        if said is not None and "Which tool?" in said:
            turns["thinking"] = (TURNS["two values"], {"text": said, "answers": ["SUNNY"], "ends": []})
        return turns

    @staticmethod
    def last_mark(said):
        marks = re.findall(r"<[^<>\s]+>|\[/?[A-Z_]+\]", said)
        return marks[-1] if marks else ""

    def check_turns(self, turns, answers):
        for (what, (calls, question)), mine in zip(turns.items(), answers):
            if "error" in mine:
                self.complain(f"{what}: {mine['error']}")
                continue
            got = [(one["name"], one["arguments"]) for one in mine["calls"]]
            # of one call a message
            shown = (calls if question["text"].count("get_weather") >= sum(name == "get_weather" for name, _ in calls)
                     else calls[:1])
            if [one["fault"] for one in mine["calls"] if one["fault"]] or got != shown:
                self.complain(f"{what}: {question['text']!r} is read as {mine['calls']}")
            if what == "thinking" and mine["thinking"] != "Which tool?":
                self.complain(f"thinking in {question['text']!r} is read as {mine['thinking']!r}")
            if what == "two values":
                self.check_after(question["ends"], mine["after"])

    def tails(self, message):
        """What transformers writes after the last value, alone and with a result."""
        alone, followed = self.render([USER, message]), self.render([USER, message, answer(message, "SUNNY")], True)
        if followed is None or "Bern" not in followed or "SUNNY" not in followed:
            return None
        return alone[alone.rfind("Bern"):], followed[followed.rfind("Bern"):]

    def second_tails(self, message):
        """The same of a second exchange, which follows the first."""
        before = [USER, message, answer(message, "rain")]
        alone, followed = self.render([*before, message]), self.render([*before, message, answer(message, "SUNNY")], True)
        if followed is None or "SUNNY" not in followed:
            return None
        return alone[alone.rfind("Bern"):], followed[followed.rfind("Bern"):]

    def check_after(self, ends, afters):
        message = assistant(TURNS["two values"], self.form)
        self.check_tails(self.tails(message), ends, afters[:len(ends)])
        self.check_tails(self.second_tails(message), ends, afters[len(ends):])

    def check_tails(self, tails, ends, afters):
        if tails is None:
            return
        for end, after in zip(ends, afters):
            written = tails[1].removesuffix(after)
            if written + after != tails[1] or not tails[0].startswith(written.rstrip()):
                self.complain(f"after a turn that {end!r} ended comes {after!r} of {tails[1]!r}")


# ---- what is trained -----------------------------------------------------------------------------------------------------------


class Samples:
    """Sequences of three turns, token for token."""

    def __init__(self, tokens, data):
        from tokenizers import Tokenizer

        folder = data / "tokenizers" / "qwen2"
        self.driver = Driver(tokens, folder)
        self.tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
        self.end = self.tokenizer.token_to_id("<|im_end|>")

    def ids(self, text):
        return self.tokenizer.encode(text, add_special_tokens=False).ids

    def pieces(self, text):
        """A token for each character: as no tokenizer cuts a text."""
        return [id for character in text for id in self.ids(character)]

    def sample(self, checked, afters):
        """(the question, the tokens that are to come, which are sampled)"""
        opening, closing = checked.form["thinking"] if checked.form else ("<think>", "</think>")
        first = (checked.said(assistant(TURNS["two values"], checked.form))
                 if checked.form else '<tool_call>{"name": "now", "arguments": {}}</tool_call>')
        thought = first if closing in first else f"{opening}\nWhich tool?\n{closing}\n\n{first}"
        turns = [[*self.pieces(text), self.end] for text in (thought, f"{thought}\n", f"{opening}\nSo.\n{closing}\n\nSunny.")]
        parts = [turns[0], self.ids(afters[0]), turns[1], self.ids(afters[1]), turns[2]]
        expected = [id for part in parts for id in part]
        sampled = [number % 2 == 0 for number, part in enumerate(parts) for _ in part]
        question = {"template": checked.template, "special_tokens": SPECIAL_TOKENS, "tools": TOOLS, "turns": turns,
                    "end": self.end, "answers": ["SUNNY"]}
        return question, expected, sampled

    def check(self, all_checked, afters):
        chosen = [one for one in all_checked if one.name in afters]
        samples = [self.sample(one, afters[one.name]) for one in chosen]
        for one, (_, expected, sampled), mine in zip(chosen, samples, self.driver.ask([question for question, _, _ in samples])):
            if mine.get("tokens") != expected or mine.get("sampled") != sampled:
                text = self.tokenizer.decode(mine["tokens"], skip_special_tokens=False) if "tokens" in mine else mine
                one.complain(f"a sample of three turns is {text!r}, not "
                             f"{self.tokenizer.decode(expected, skip_special_tokens=False)!r}")
        return len(chosen)


def between(checked):
    """What transformers writes after the first and the second turn, alone and with a result; None: it shows no results."""
    if checked.form:
        message = assistant(TURNS["two values"], checked.form)
        both = checked.tails(message), checked.second_tails(message)
        return both if all(both) else None
    message = {"role": "assistant", "content": "Bern"}
    for follows in ({"role": "tool", "name": "now", "tool_call_id": "call00000", "content": "SUNNY"},
                    {"role": "user", "content": "SUNNY"}):
        found = []
        for before in ([USER], [USER, message, follows]):
            alone, followed = checked.render([*before, message]), checked.render([*before, message, follows], True)
            if followed and alone and "SUNNY" in followed[followed.rfind("Bern"):]:
                found.append((alone[alone.rfind("Bern"):], followed[followed.rfind("Bern"):]))
        if len(found) == 2:
            return found
    return None


def without_open_mark(text):
    opened = max(text.rfind("<"), text.rfind("["))
    return text if opened < 0 or re.search(r"[>\]]", text[opened:]) else text[:opened]


def after_another_end(checked, tails):
    """The part of `tails` that follows a turn: without the end of the message, but for blanks after it."""
    alone, followed = tails
    common = os.path.commonprefix([alone, followed])
    plain = checked.render([USER, {"role": "assistant", "content": "PLAIN"}]) or ""
    end = plain[plain.rfind("PLAIN") + len("PLAIN"):]
    if not common.endswith(end):
        return followed[len(common):] if common == alone else followed[len(without_open_mark(common)):]
    return followed[len(common) - (len(end) - len(end.rstrip(" \r\n\t"))):]


# ---- command line --------------------------------------------------------------------------------------------------------------


def check(arguments):
    renderer = chat_template_cases.Renderer(Reference())
    published = published_templates.published(arguments.data)
    driver = Driver(arguments.driver)
    checked = [Checked(name, text, renderer) for name, text in {**published, **published_templates.own()}.items()]
    for one, mine in zip(checked, driver.ask([one.question() for one in checked])):
        one.form = mine.get("format")
    cases = [conversations(one.form) for one in checked]
    turns = [one.turns() if one.form else {} for one in checked]
    questions = [one.question(renders=[as_question(*case) for case in some], turns=[question for _, question in its.values()])
                 for one, some, its in zip(checked, cases, turns)]
    for one, mine, some, its in zip(checked, driver.ask(questions), cases, turns):
        if "error" in mine and "renders" not in mine:
            one.complain(mine["error"])
            continue
        one.check_renders(mine["renders"], some)
        one.check_turns(its, mine["turns"])
    sequences = 0
    if arguments.tokens:
        tails = {one.name: between(one) for one in checked}
        sequences = Samples(arguments.tokens, arguments.data).check(
            checked, {one.name: [after_another_end(one, both) for both in tails[one.name]] for one in checked if tails[one.name]})
    for one in checked:
        for problem in one.problems[:3]:
            print(f"{one.name}: {problem}")
    wrong = sum(bool(one.problems) for one in checked)
    calls = sum(bool(one.form) and one.name in published for one in checked)
    print(f"{len(checked)} templates, {len(published)} of them published: {calls} of these write calls, {sequences} samples; "
          f"{wrong} templates are wrong")
    enough = len(published) >= 29 and calls >= 29 and (not arguments.tokens or sequences >= 29)
    return 0 if enough and wrong == 0 else 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("driver")
    parser.add_argument("data", type=pathlib.Path)
    parser.add_argument("--tokens")
    arguments = parser.parse_args()
    if missing := published_templates.missing():
        print(f"skipped: {missing}")
        return 1 if os.environ.get("CI") == "true" else published_templates.SKIPPED
    return check(arguments)


if __name__ == "__main__":
    sys.exit(main())
