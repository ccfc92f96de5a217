#!/usr/bin/env python3
"""Compares our reading of model files of SentencePiece, where no tokenizer.json is beside them, with SentencePiece itself.

    python tests/oracles/sentencepiece_fuzz.py PROGRAM [--count N] [--seed S] [--only NAME]

PROGRAM is sluice_tokenizer_lines. Ids of random text, and the text of these ids. Ends with 1 at a difference.
"""

import argparse
import json
import pathlib
import random
import sys
import tempfile

import sentencepiece_models
from sentencepiece import SentencePieceProcessor
from tokenizer_fuzz import answers
from tokenizer_samples import corpus, random_text

UNKNOWN, CONTROL = 2, 3
BLANK = "\u2581"  # as SentencePiece writes it; in a text it would be one more way to write a blank


def model_files(texts):
    """(name, bytes) of each, with the settings of Llama 2, Gemma and T5, and of others that differ from them."""
    train = sentencepiece_models.train
    yield "llama-2", train(texts, "bpe", vocab_size=700, byte_fallback=True, split_digits=True, remove_extra_whitespaces=False)
    yield "gemma", train(texts, "bpe", vocab_size=700, byte_fallback=True, split_digits=True, remove_extra_whitespaces=False,
                         add_dummy_prefix=False, allow_whitespace_only_pieces=True, pad_id=0, eos_id=1, bos_id=2, unk_id=3,
                         user_defined_symbols=["<2mass>", "\n", "\n\n", *(BLANK * length for length in range(2, 16))])
    yield "t5", train(texts, "unigram", "nmt_nfkc", vocab_size=700, pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    yield "unigram-bytes", train(texts, "unigram", sentencepiece_models.SOME_RULES, byte_fallback=True, vocab_size=700)
    yield "bpe-nfkc", train(texts, "bpe", "nmt_nfkc_cf", vocab_size=700)
    yield "unigram-across-words", train(texts, "unigram", vocab_size=700, split_by_whitespace=False,
                                        remove_extra_whitespaces=False)


def texts_without_special_tokens(model, count, random_stream):
    """We find special tokens in text, as those do who load a tokenizer.json."""
    pieces = sentencepiece_models.parsed(model).pieces
    left_out = [BLANK] + [piece.piece for piece in pieces if piece.type in (UNKNOWN, CONTROL)]
    drawn = (random_text(random_stream) for _ in range(count))
    return [text for text in drawn if not any(token in text for token in left_out)]


def compare(program, name, model, count, random_stream):
    processor = SentencePieceProcessor(model_proto=model)
    texts = texts_without_special_tokens(model, count, random_stream)
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "tokenizer.model").write_bytes(model)
        (pathlib.Path(folder) / "tokenizer_config.json").write_text('{"add_eos_token": false}')
        given = answers(program, pathlib.Path(folder), texts)
    wrong = 0
    for text, answer in zip(texts, given, strict=True):
        ids = processor.encode(text)
        right = {"ids": ids, "decoded": answer["decoded"] if processor.unk_id() in ids else processor.decode(ids)}
        if answer != right:
            wrong += 1
            if wrong <= 3:
                print(f"  {name}: {json.dumps(text)}\n    expected {json.dumps(right)}\n    given    {json.dumps(answer)}")
    print(f"{name}: {len(texts)} texts, {wrong} differences", flush=True)
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("--count", type=int, default=12_500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only")
    options = parser.parse_args()
    random_stream = random.Random(options.seed)
    texts = corpus(random_stream)
    wrong = 0
    for name, model in model_files(texts):
        if options.only in (None, name):
            wrong += compare(options.program, name, model, options.count, random_stream)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
