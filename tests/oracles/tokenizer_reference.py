#!/usr/bin/env python3
"""Writes tests/golden/text/tokenizer/: ids and texts by the `tokenizers` package (0.23.3 wrote the committed files).

    python tests/oracles/tokenizer_reference.py DATA

DATA holds tokenizers/{gpt2,qwen2,falcon,phi-3-mini}/tokenizer.json.

gpt2.jsonl, qwen2.jsonl, ...   one case a line: {"text", "ids", "decoded"}
families.jsonl                 one small tokenizer a line: {"name", "tokenizer", "texts": cases as above with special tokens,
                               "ids": cases {"ids", "decoded", "skipped"}, where special tokens are skipped}
sentencepiece/*.model          small models of SentencePiece, and sentencepiece.jsonl: {"name", "texts": cases as above, by it}
variants.json                  a small tokenizer.json and changes to it (JSON merge patches, RFC 7396), each with cases
"""

import copy
import json
import pathlib
import random
import sys

from sentencepiece import SentencePieceProcessor
from sentencepiece_fuzz import model_files, texts_without_special_tokens
from tokenizer_fuzz import expected, random_ids
from tokenizer_samples import corpus, random_text, small_tokenizers
from tokenizers import Tokenizer

OUTPUT = pathlib.Path(__file__).resolve().parent.parent / "golden" / "text" / "tokenizer"


def real_cases(tokenizer, seed):
    random_stream = random.Random(seed)
    for _ in range(200):
        text = random_text(random_stream)
        ids = tokenizer.encode(text, add_special_tokens=False).ids
        yield {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}


def family_lines():
    random_stream = random.Random(7)
    for name, made in small_tokenizers(random_stream):
        tokenizer = Tokenizer.from_str(made.to_str())  # a file keeps the last bit of a score only mostly
        texts = [random_text(random_stream) for _ in range(25)]
        ids = [random_ids(random_stream, tokenizer.get_vocab_size()) for _ in range(10)]
        yield {"name": name, "tokenizer": json.loads(tokenizer.to_str()),
               "texts": [{"text": text} | expected(tokenizer, text) for text in texts],
               "ids": [{"ids": list_} | expected(tokenizer, list_) for list_ in ids]}


def sentencepiece_lines():
    random_stream = random.Random(11)
    for name, model in model_files(corpus(random_stream)):
        if len(model) > 100_000:
            continue  # has one of SentencePiece's own maps
        (OUTPUT / "sentencepiece" / f"{name}.model").write_bytes(model)
        processor = SentencePieceProcessor(model_proto=model)
        texts = texts_without_special_tokens(model, 40, random_stream)
        cases = [{"text": text, "ids": processor.encode(text)} for text in texts]
        yield {"name": name, "texts": [case | {"decoded": processor.decode(case["ids"])} for case in cases
                                       if processor.unk_id() not in case["ids"]]}


# ---- a small tokenizer and its variants -------------------------------------------------------------------------------------


def byte_alphabet():
    printable = [b for b in range(256) if 0x21 <= b <= 0x7E or (b >= 0xA1 and b != 0xAD)]
    others = [b for b in range(256) if b not in printable]
    characters = {b: chr(b) for b in printable} | {b: chr(256 + i) for i, b in enumerate(others)}
    return [characters[b] for b in range(256)]


BYTE_LEVEL = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
MERGES = ["h e", "l l", "he ll", "hell o", "\u0120 hello", "1 2", "12 3", "- -", "a b", "b c", "a bc", "ab c", "\u0120 \u0120",
          "\u00c3 \u00a9"]


def base():
    vocab = {character: i for i, character in enumerate(byte_alphabet())}
    for merge in MERGES:
        vocab.setdefault(merge.replace(" ", ""), len(vocab))
    vocab["hellohello"] = len(vocab)  # no merge leads here
    return {"version": "1.0", "added_tokens": [], "normalizer": None, "pre_tokenizer": BYTE_LEVEL, "post_processor": None,
            "decoder": BYTE_LEVEL, "model": {"type": "BPE", "vocab": vocab, "merges": MERGES}}


def sequence(*steps):
    return {"pre_tokenizer": {"type": "Sequence", "pretokenizers": list(steps)}}


def split(behavior, invert=False, **pattern):
    return {"type": "Split", "pattern": pattern, "behavior": behavior, "invert": invert}


def added(content, id, **flags):
    plain = {"single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
    return {"id": id, "content": content} | plain | flags


def variants(vocab):
    first_free_id = len(vocab)
    bytes_only = BYTE_LEVEL | {"use_regex": False}
    yield "byte level", {}
    yield "prefix space", {"pre_tokenizer": {"add_prefix_space": True}}
    yield "prefix space on every piece", sequence(split("Isolated", String="-"), BYTE_LEVEL | {"add_prefix_space": True})
    yield "no regex", {"pre_tokenizer": bytes_only}
    for behavior in ["Isolated", "Removed", "MergedWithPrevious", "MergedWithNext", "Contiguous"]:
        for invert in [False, True]:
            name = f"split {behavior}{' inverted' if invert else ''}"
            yield name, sequence(split(behavior, invert, String="-"), bytes_only)
        yield f"split regex {behavior}", sequence(split(behavior, Regex="[0-9]+|l"), bytes_only)
        yield f"punctuation {behavior}", sequence({"type": "Punctuation", "behavior": behavior}, bytes_only)
    yield "split by what may be empty", sequence(split("Isolated", Regex="l*"), bytes_only)
    yield "split by special characters", sequence(split("Removed", String=".*"), bytes_only)
    yield "digits together", sequence({"type": "Digits", "individual_digits": False}, bytes_only)
    yield "digits alone", sequence({"type": "Digits", "individual_digits": True}, BYTE_LEVEL)
    # After ByteLevel a step sees the alphabet, where \xb2 is a byte of some other character and a number all the same.
    digits_then_spaces = [{"type": "Digits", "individual_digits": False}, split("Removed", String="\u0120")]
    yield "steps after byte level", sequence(BYTE_LEVEL, *digits_then_spaces)
    yield "merges as pairs", {"model": {"merges": [merge.split(" ") for merge in MERGES]}}
    yield "ignore merges", {"model": {"ignore_merges": True}}
    missing = {token: None for token in ["-", "\u0120", "--", "\u0120hello", "\u0120\u0120"]}
    yield "bytes without token", {"model": {"vocab": missing, "merges": ["h e", "l l"]}}
    for fuse in [False, True]:
        yield f"unknown token{' fused' if fuse else ''}", {"model": {"unk_token": "?", "fuse_unk": fuse, "merges": ["h e", "l l"],
                                                                     "vocab": {"\u00c3": None, "\u00a9": None, "\u0120": None}}}
    yield "NFC", {"normalizer": {"type": "Sequence", "normalizers": [{"type": "NFC"}]}}
    tokens = [added("<s>", first_free_id), added("hello", vocab["hello"]), added("<s><s>", first_free_id + 1)]
    yield "added tokens", {"added_tokens": tokens}
    tokens = [added("<l>", first_free_id, lstrip=True), added("<r>", first_free_id + 1, rstrip=True),
              added("--", vocab["--"], lstrip=True, rstrip=True, special=False)]
    yield "stripping tokens", {"added_tokens": tokens}
    tokens = [added("ab", vocab["ab"], single_word=True), added("<s>", first_free_id, single_word=True)]
    yield "single words", {"added_tokens": tokens}
    yield "normalized tokens", {"normalizer": {"type": "NFC"}, "added_tokens": [added("\u1ea0", first_free_id, normalized=True),
                                                                                added("\u1ea0-", first_free_id + 1)]}
    single = [{"SpecialToken": {"id": "<s>", "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}},
              {"SpecialToken": {"id": "</s>", "type_id": 0}}]
    special = {name: {"id": name, "ids": [first_free_id + i], "tokens": [name]} for i, name in enumerate(["<s>", "</s>"])}
    template = {"type": "TemplateProcessing", "single": single, "pair": [], "special_tokens": special}
    tokens = [added("<s>", first_free_id), added("</s>", first_free_id + 1)]
    yield "template", {"added_tokens": tokens, "post_processor": {"type": "Sequence", "processors": [BYTE_LEVEL, template]}}


TEXTS = ["", " ", "hello", " hello hello", "hellohello", "a-b--c---d", "-", "--", "--hello--", "123 1234-12", "abc ab c abcabc",
         "caf\u00e9 e\u0301 \u1ea0A\u0323 \u1ea0-A\u0323-", "x.*y.*", "l ll lll", "(hello), [a]! $5 \u00bfab?",
         "\u00b2\u00bd \u0663 \u0432", "<s>hello</s>",
         "<s><s><s> ab <s>ab<s> abc",
         " <l> <r>  \n x  --  <l>", "\u3000<r>\u3000<l>\u3000", "ab_ab ab,ab \u00e9ab", "\U0001f999\u0301"]


def merge_patch(target, patch):
    if not isinstance(patch, dict):
        return patch
    target = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            target.pop(key, None)
        else:
            target[key] = merge_patch(target.get(key), value)
    return target


def variant_cases(tokenizer):
    for text in TEXTS:
        ids = tokenizer.encode(text, add_special_tokens=True).ids
        case = {"text": text, "ids": ids, "decoded": tokenizer.decode(ids, skip_special_tokens=False)}
        without_special = tokenizer.decode(ids, skip_special_tokens=True)
        if without_special != case["decoded"]:
            case["decoded_without_special"] = without_special
        yield case


def write_lines(path, values):
    path.write_text("".join(json.dumps(value, separators=(",", ":")) + "\n" for value in values), encoding="utf8")


def main(data):
    OUTPUT.mkdir(parents=True, exist_ok=True)
    for seed, name in enumerate(["gpt2", "qwen2", "falcon", "phi-3-mini"]):
        tokenizer = Tokenizer.from_file(f"{data}/tokenizers/{name}/tokenizer.json")
        write_lines(OUTPUT / f"{name}.jsonl", real_cases(tokenizer, seed))

    write_lines(OUTPUT / "families.jsonl", family_lines())
    write_lines(OUTPUT / "sentencepiece" / "sentencepiece.jsonl", sentencepiece_lines())

    small = base()
    lines = []
    for name, patch in variants(small["model"]["vocab"]):
        changed = merge_patch(copy.deepcopy(small), patch)
        for key in ("version", "truncation", "padding", "added_tokens", "normalizer", "pre_tokenizer", "post_processor",
                    "decoder"):
            changed.setdefault(key, None)
        cases = list(variant_cases(Tokenizer.from_str(json.dumps(changed))))
        lines.append(json.dumps({"name": name, "patch": patch, "cases": cases}, separators=(",", ":")))
    base_text = json.dumps(small, separators=(",", ":"))
    (OUTPUT / "variants.json").write_text('{"base":' + base_text + ',\n"variants":[\n' + ",\n".join(lines) + "\n]}\n",
                                          encoding="utf8")


if __name__ == "__main__":
    main(sys.argv[1])
