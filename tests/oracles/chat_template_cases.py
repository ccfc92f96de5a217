"""The conversations and snippets that chat_template_reference.py writes expected texts for."""

import itertools
import json
import re

import random_templates
from chat_template_snippets import SNIPPETS

SPECIAL_TOKENS = {"bos_token": "<s>", "eos_token": "</s>", "pad_token": "<pad>"}

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Weather of a city <now> & \"later\"",
    "parameters": {"type": "object", "properties": {"city": {"type": "string", "description": "Name, as in \u201eZürich\u201c"},
                                                    "days": {"type": "integer"}, "units": {"type": ["string", "integer"]}},
                   "required": ["city"]}}}
SEARCH = {"type": "function", "function": {"name": "search", "description": "Find pages", "parameters": {
    "type": "object", "properties": {"queries": {"type": "array", "items": {"type": "string"}, "description": "what to find"},
                                     "options": {"type": "object", "additionalProperties": {"type": "number"}}}}}}
NO_ARGUMENTS = {"type": "function",
                "function": {"name": "now", "description": "The time", "parameters": {"type": "object", "properties": {}}}}


def call(name, arguments, **more):
    return {"type": "function", **more, "function": {"name": name, "arguments": arguments}}


USER = {"role": "user", "content": "Hi there"}
SYSTEM = {"role": "system", "content": "You are terse.\n"}
HELLO = {"role": "assistant", "content": "Hello! How can I help?"}
THOUGHT = {"role": "assistant", "content": "<think>\nIt is a greeting.\n</think>\n\nHello."}

CONVERSATIONS = {
    "one": [USER],
    "system": [SYSTEM, USER],
    "turns": [USER, HELLO, {"role": "user", "content": "Tell me a joke"}],
    "turns_done": [SYSTEM, USER, HELLO, {"role": "user", "content": "Bye"}, {"role": "assistant", "content": "Goodbye."}],
    "unicode": [{"role": "system", "content": "Sprich Deutsch. 漢字"},
                {"role": "user", "content": "Größe? 😀\u00a0\u2028 \"quoted\" \\ \t <b>&amp;</b> é"},
                {"role": "assistant", "content": "naïve ‘ja’ 👩‍🚀"}],
    "empty_content": [{"role": "user", "content": ""}, {"role": "assistant", "content": ""},
                      {"role": "user", "content": "  spaces  \n"}],
    "template_syntax": [{"role": "user", "content": "{{ 7 * 7 }} {% if x %} {# no #}\r\nend"}],
    "thinking_inline": [USER, THOUGHT, {"role": "user", "content": "Again"}, THOUGHT],
    "reasoning": [USER, {"role": "assistant", "reasoning_content": "Greet back.", "content": "Hello."}],
    "reasoning_old_name": [USER, {"role": "assistant", "content": "Hello.", "thinking": "Greet back."},
                           {"role": "user", "content": "More"},
                           {"role": "assistant", "reasoning": "\nmore\n", "content": "More."}],
    "tool_call": [SYSTEM, {"role": "user", "content": "Weather in Zürich?"},
                  {"role": "assistant", "content": None, "tool_calls": [
                      call("get_weather", {"city": "Zürich", "days": 2, "exact": 1.0, "none": None}, id="call12345")]},
                  {"role": "tool", "name": "get_weather", "content": "{\"temperature\": 21.5}", "tool_call_id": "call12345"}],
    "tool_calls": [{"role": "user", "content": "Both?"}, {"role": "assistant", "content": "Let me see.", "tool_calls": [call(
        "get_weather", {"city": "Rom"}, id="aaaaaaaaa"), call("search", {"queries": ["a", "b"], "options": {}}, id="bbbbbbbbb")]},
                   {"role": "tool", "content": "sunny"}, {"role": "tool", "content": "2 pages"},
                   {"role": "assistant", "content": "Sunny, 2 pages."}, {"role": "user", "content": "Thanks"}],
    "tool_call_text_arguments": [{"role": "user", "content": "Time?"},
                                 {"role": "assistant", "tool_calls": [call("now", "{\"zone\": \"UTC\"}", id="ccccccccc")]},
                                 {"role": "tool", "content": "12:00"}],
    "tool_call_flat": [{"role": "user", "content": "Time?"},
                       {"role": "assistant", "content": "", "tool_calls": [{"name": "now", "arguments": {}}]},
                       {"role": "tool", "content": {"time": [12, 0]}}],
    "content_parts": [{"role": "user", "content": [{"type": "text", "text": "What is this?"}, {"type": "image"}]}],
    "assistant_first": [HELLO, USER],
    "two_users": [USER, USER, HELLO],
    "two_assistants": [USER, HELLO, HELLO],
    "odd_role": [USER, {"role": "critic", "content": "Hm."}],
    "no_content": [USER, {"role": "assistant"}],
    "extra_keys": [{"role": "user", "content": "Hi", "name": "Ann", "weight": 1e-7, "flags": [True, None, 12345678901, -0.0],
                    "nested": {"a": {"b": []}}}],
}

# Which options each conversation is rendered with.
OPTIONS = {
    "prompt": {"add_generation_prompt": True},
    "plain": {"add_generation_prompt": False},
    "tools": {"add_generation_prompt": True, "tools": [WEATHER, SEARCH, NO_ARGUMENTS]},
    "no_thinking": {"add_generation_prompt": True, "enable_thinking": False},
    "thinking": {"add_generation_prompt": True, "enable_thinking": True},
    "documents": {"documents": [{"title": "T", "text": "Text ü"}], "tools": []},
    "variables": {"add_generation_prompt": True, "bos_token": "<over>", "date_string": "1 Jan 2000",
                  "tools_in_user_message": True, "tools": [NO_ARGUMENTS]},
}


def normalized(messages):
    return [{key: value for key, value in message.items() if value is not None} for message in messages]


def merged(ranges):
    result = []
    for begin, end in sorted(ranges):
        if begin == end:
            continue
        if result and begin <= result[-1][1]:
            result[-1][1] = max(result[-1][1], end)
        else:
            result.append([begin, end])
    return result


class Renderer:
    """apply_chat_template of a tokenizer that has nothing but special tokens."""

    def __init__(self, reference):
        from tokenizers import Tokenizer, models
        from transformers import PreTrainedTokenizerFast

        self.utils = reference.utils
        self.tokenizer = PreTrainedTokenizerFast(tokenizer_object=Tokenizer(models.WordLevel({"?": 0}, unk_token="?")),
                                                 **SPECIAL_TOKENS)

    def render(self, template, messages, options):
        try:
            text = self.tokenizer.apply_chat_template(messages, chat_template=template, tokenize=False, **options)
            return {"text": text.encode().decode()}
        except Exception as error:
            return {"error": type(error).__name__}

    def mask(self, template, messages, options):
        try:
            rendered, indices = self.utils.render_jinja_template([normalized(messages)],
                                                                 chat_template=template, return_assistant_tokens_mask=True,
                                                                 **{**SPECIAL_TOKENS, **options})
        except Exception as error:
            return {"error": type(error).__name__}
        text = rendered[0]
        return {"assistant": merged([[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in indices[0]])}


def conversation_cases(renderer, name, template):
    for (conversation, messages), (kind, options) in itertools.product(CONVERSATIONS.items(), OPTIONS.items()):
        if (kind not in ("prompt", "plain") and
            conversation not in ("system", "turns_done", "tool_call", "tool_calls", "reasoning", "unicode")):
            continue
        case = {"template": name, "conversation": conversation, "options": kind, **renderer.render(template, messages, options)}
        if re.search(r"\bgeneration -?%}", template) and "text" in case:
            case.update(renderer.mask(template, messages, options))
        yield case


CONTINUED = [
    ("chatml", "turns_done", "content"), ("chatml", "one", "content"), ("generation", "turns_done", "content"),
    ("llama31", "turns_done", "content"), ("zephyr", "empty_content", "content"),
    ("generation", "reasoning", "reasoning_content"), ("generation", "reasoning_old_name", "reasoning"),
    ("generation", "reasoning_old_name", "thinking"), ("chatml", "reasoning", "reasoning_content"),
    ("chatml", "no_content", "content"), ("everything_printed", "content_parts", "content"),
    ("gemma2", "empty_content", "content"), ("mistral", "turns_done", "content"), ("everything_printed", "reasoning", "nope"),
]


def continued_cases(renderer, templates):
    for name, conversation, key in CONTINUED:
        yield {"template": name, "conversation": conversation, "continue": key,
               **renderer.render(templates[name], CONVERSATIONS[conversation], {"continue_final_message": key})}


def write_lines(path, values):
    path.write_text("".join(json.dumps(value, ensure_ascii=False) + "\n" for value in values), encoding="utf-8")


def is_comparable(answer):
    """Not where an object lies in memory."""
    return " at 0x" not in json.dumps(answer)


def write(reference, data, folder):
    renderer = Renderer(reference)
    shared = {path.stem: path.read_text(encoding="utf-8") for path in sorted((data / "chat_templates").glob("*.jinja"))}
    own = {path.stem: path.read_text(encoding="utf-8") for path in sorted((folder / "templates").glob("*.jinja"))}
    inputs = {"special_tokens": SPECIAL_TOKENS, "conversations": CONVERSATIONS, "options": OPTIONS,
              "variables": random_templates.VARIABLES}
    (folder / "inputs.json").write_text(json.dumps(inputs, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")
    write_lines(folder / "shared.jsonl",
                (case for name, text in shared.items() for case in conversation_cases(renderer, name, text)))
    write_lines(folder / "own.jsonl", (case for name, text in own.items() for case in conversation_cases(renderer, name, text)))
    write_lines(folder / "continued.jsonl", continued_cases(renderer, own))
    snippets = []
    for template in SNIPPETS:
        answer = reference.render(template, random_templates.VARIABLES)
        if not is_comparable(answer):
            continue
        snippets.append({"template": template, **({"error": True} if "error" in answer else answer)})
    write_lines(folder / "snippets.jsonl", snippets)
    print(f"{len(snippets)} snippets, {sum('error' in s for s in snippets)} refused")
