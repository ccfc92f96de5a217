#!/usr/bin/env python3
"""Writes tests/golden/text/assistant_mask.jsonl: which tokens of a conversation are the assistant's, as `transformers` says.

    python tests/oracles/assistant_mask_reference.py DATA

DATA holds tokenizers/{gpt2,qwen2,phi-3-mini}/tokenizer.json. A line has {"tokenizer", "text", "ranges", "ids", "mask"}: the
conversation as a chat template wrote it, the assistant's parts of it in bytes, its tokens, and 1 for each token that is the
assistant's.
"""

import json
import pathlib
import random
import sys

from transformers import PreTrainedTokenizerFast
from transformers.utils.chat_template_utils import render_jinja_template

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "text" / "assistant_mask.jsonl"

TEMPLATES = [
    "{% for m in messages %}<|im_start|>{{ m.role }}\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|im_end|>"
    "{% endgeneration %}{% else %}{{ m.content }}<|im_end|>{% endif %}\n{% endfor %}",
    "{% for m in messages %}{% if m.role == 'assistant' %}\n\nAnswer:\n{% generation %}{{ m.content }}{% endgeneration %}\n"
    "{% else %}\n\nQuestion: {{ m.content }}{% endif %}{% endfor %}",
]
# Its special tokens take in the white space behind them, and the text behind them begins with a space of the tokenizer's own.
PHI = ["{% for m in messages %}<|{{ m.role }}|>\n{% if m.role == 'assistant' %}{% generation %}{{ m.content }}<|end|>\n"
       "{% endgeneration %}{% else %}{{ m.content }}<|end|>\n{% endif %}{% endfor %}"]
# Characters that a normaliser changes, that take several tokens, and line breaks that a token joins to those of the template.
WORDS = ["Hello", " world", "12345", "\n", "\n\n", "  ", "\u00e9", "e\u0301", "\u1112\u1161\u11ab", "\u4f60\u597d", "\U0001f600",
         "\u212b", "don't", "<|im_start|>", "\t", "!!!", "x"]


def words(stream, begin):
    # An ASCII letter at both ends: in a character that is cut into several tokens transformers finds the first one only.
    return begin + "".join(stream.choice(WORDS) for _ in range(stream.randrange(12))) + "y"


def cases(name, tokenizer, seed):
    stream = random.Random(seed)
    templates, begins = (PHI, ["x", "\u4f60"]) if name == "phi-3-mini" else (TEMPLATES, ["x"])
    for i in range(30):
        template = stream.choice(templates)
        messages = [{"role": role, "content": words(stream, begins[i % len(begins)])}
                    for role in ["user", "assistant"] * stream.randrange(1, 4)]
        [text], [ranges] = render_jinja_template([messages], chat_template=template, return_assistant_tokens_mask=True)
        encoded = tokenizer.apply_chat_template(messages, chat_template=template, return_assistant_tokens_mask=True,
                                                return_dict=True)
        in_bytes = [[len(text[:begin].encode()), len(text[:end].encode())] for begin, end in ranges]
        yield {"tokenizer": name, "text": text, "ranges": in_bytes, "ids": encoded["input_ids"],
               "mask": encoded["assistant_masks"]}


def main():
    folder = pathlib.Path(sys.argv[1]) / "tokenizers"
    with OUTPUT.open("w", encoding="utf-8") as file:
        for seed, name in enumerate(["gpt2", "qwen2", "phi-3-mini"]):
            tokenizer = PreTrainedTokenizerFast(tokenizer_file=str(folder / name / "tokenizer.json"))
            for case in cases(name, tokenizer, seed):
                file.write(json.dumps(case, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
