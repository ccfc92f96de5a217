"""Small tokenizers of every family, and random text for them. Used by tokenizer_reference.py and tokenizer_fuzz.py."""

import collections
import json

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from word_model_samples import real_sizes, unigram_family, word_level_family, word_piece_family

LLAMA3_WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")
FRAGMENTS = [
    "'s", "'S", "'re", " '", "n't", "'LL", "'\u017f", "'\u017ft", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n ", "\n ",
    " \r", "\u0085", "\u2028",
    "123", "1234567", "\u00a0", "\u3000", "\u200d", "e\u0301", "\u1e9b\u0323", "\ufb01", "the ", " quick", "Hello", " world",
    "!!", "...",
    "\u00bf", "\u00b2\u00bd", "\u0663", "\u2167", "\U0001f469\u200d\U0001f680", "\u0915\u094d\u0937\u093f", "\u0344",
    "\u0958", "\u212b", "\ud55c",
    "\u1112\u1161\u11ab", "\u1112\u1161", "\u11ab", "\u017f", "_", "\x00", "\ufffd", "\ufeff", "<|endoftext|>",
    "<|im_start|>", "<|endof", "<s>", "</s>",
    "<unk>", "<0x0A>", "\u2581", "\u2581\u2581", " \u2581", "\u2581 ", "<|user|>", "<|end|>\n", "[MASK]", " [MASK] ",
    "\u0130", "I\u0307", "\u1e9e", "\u03a3",
    "\u0301", "\u0323\u0301", "\U00011935\U00011930", "\u32ff", "\ua7f2", "\u0898\u0301", "\ufdfa", "\uff9e", "\u314f", "a-b",
    "it's", "DON'T", "</w>", "##",
]
RANGES = [(32, 127)] * 5 + [
    (0, 32), (127, 0x180), (0x180, 0x300), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x700, 0x900), (0x900, 0xE80),
    (0xE80, 0x1E00), (0x1E00, 0x2070), (0x2070, 0x2500), (0x2500, 0x3000), (0x3000, 0x3100), (0x3100, 0x3400), (0x4E00, 0x9FFF),
    (0xA000, 0xAC00), (0xAC00, 0xD7A4), (0xD7B0, 0xD800), (0xE000, 0xF900), (0xF900, 0x10000), (0x10000, 0x12000),
    (0x16000, 0x1F000), (0x1F000, 0x1FB00), (0x20000, 0x110000),
]
WORDS = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
                r"|\s*[\r\n]+|\s+(?!\S)|\s+")
FRAGMENTS = [
    "'s", "'S", "'re", " '", "n't", "'LL", "'\u017f", "'\u017ft", "  ", "   ", "\n", "\r\n", "\n\n", "\t", " \n ", "\n ",
    " \r", "\u0085", "\u2028",
    "123", "1234567", "\u00a0", "\u3000", "\u200d", "e\u0301", "\u1e9b\u0323", "\ufb01", "the ", " quick", "Hello", " world",
    "!!", "...",
    "\u00bf", "\u00b2\u00bd", "\u0663", "\u2167", "\U0001f469\u200d\U0001f680", "\u0915\u094d\u0937\u093f", "\u0344",
    "\u0958", "\u212b", "\ud55c",
    "\u1112\u1161\u11ab", "\u1112\u1161", "\u11ab", "\u017f", "_", "\x00", "\ufffd", "\ufeff", "<|endoftext|>",
    "<|im_start|>", "<|endof", "<s>", "</s>",
    "<unk>", "<0x0A>", "\u2581", "\u2581\u2581", " \u2581", "\u2581 ", "<|user|>", "<|end|>\n", "[MASK]", " [MASK] ",
    "\u0130", "I\u0307", "\u1e9e", "\u03a3",
    "\u0301", "\u0323\u0301", "\U00011935\U00011930", "\u32ff", "\ua7f2", "\u0898\u0301", "\ufdfa", "\uff9e", "\u314f", "a-b",
    "it's", "DON'T", "</w>", "##",
]
RANGES = [(32, 127)] * 5 + [
    (0, 32), (127, 0x180), (0x180, 0x300), (0x300, 0x370), (0x370, 0x530), (0x590, 0x700), (0x700, 0x900), (0x900, 0xE80),
    (0xE80, 0x1E00),
    (0x1E00, 0x2070), (0x2070, 0x2500), (0x2500, 0x3000), (0x3000, 0x3100), (0x3100, 0x3400), (0x4E00, 0x9FFF), (0xA000, 0xAC00),
    (0xAC00, 0xD7A4), (0xD7B0, 0xD800), (0xE000, 0xF900), (0xF900, 0x10000), (0x10000, 0x12000), (0x16000, 0x1F000), (0x1F000,
                                                                                                                      0x1FB00),
    (0x20000, 0x110000),
]
WORDS = ("the quick brown fox jumps over the lazy dog it's we'll they're don't 12 345 6789 $5.00 hello world Hello World "
         "caf\u00e9 na\u00efve \u043f\u0440\u0438\u0432\u0435\u0442 \u043c\u0438\u0440 \u4f60\u597d \u4e16\u754c "
         "\u3053\u3093\u306b\u3061\u306f "
         "\uc548\ub155 \u0928\u092e\u0938\u094d\u0924\u0947 \u0645\u0631\u062d\u0628\u0627 "
         "(x+y)*z == 3.14; if a != b: return -- ... !!").split(" ")


def random_text(random_stream):
    """Up to ten fragments, words and single characters of all of Unicode."""
    pieces = []
    for _ in range(random_stream.choice([1, 2, 3, 5, 10])):
        kind = random_stream.random()
        if kind < 0.4:
            pieces.append(random_stream.choice(FRAGMENTS))
        elif kind < 0.6:
            pieces.append(random_stream.choice([" ", ""]) + random_stream.choice(WORDS))
        else:
            pieces.append(chr(random_stream.randrange(*random_stream.choice(RANGES))) * random_stream.choice([1, 1, 1, 2, 3]))
    return "".join(pieces)


def corpus(random_stream):
    return [" ".join(random_stream.choices(WORDS, k=12)) for _ in range(400)]


def byte_level_bpe(texts, pre_tokenizer, **model):
    """A byte-level model trained on `texts`."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizer
    trainer = trainers.BpeTrainer(vocab_size=700, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(), show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    return with_model(tokenizer, **model)


def with_model(tokenizer, **settings):
    data = json.loads(tokenizer.to_str())
    data["model"].update(settings)
    return Tokenizer.from_str(json.dumps(data))


def sentencepiece_bpe(texts, fallback_bytes=range(256), whole_text=True, **model):
    """A model of characters with <unk>, <s>, </s> and byte tokens. With `whole_text` the pre-tokenizer is left out."""
    bytes_ = [f"<0x{byte:02X}>" for byte in fallback_bytes]
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.BpeTrainer(vocab_size=600, special_tokens=["<unk>", "<s>", "</s>", *bytes_], show_progress=False)
    tokenizer.train_from_iterator(texts, trainer)
    data = json.loads(tokenizer.to_str())
    data["added_tokens"] = [token for token in data["added_tokens"] if not token["content"].startswith("<0x")]
    data["model"].update({"byte_fallback": True, "fuse_unk": True} | model)
    if whole_text:
        data["pre_tokenizer"] = None
    return Tokenizer.from_str(json.dumps(data))


def sentencepiece_decoder(strip=True):
    steps = [decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse()]
    return decoders.Sequence(steps + ([decoders.Strip(" ", 1, 0)] if strip else []))


def begin_with(token, tokenizer):
    return processors.TemplateProcessing(single=f"{token} $A", special_tokens=[(token, tokenizer.token_to_id(token))])


def byte_level_family(texts):
    words = pre_tokenizers.Sequence([pre_tokenizers.Split(Regex(LLAMA3_WORDS), "isolated"),
                                     pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)])
    llama3 = byte_level_bpe(texts, words, ignore_merges=True)
    llama3.decoder = decoders.ByteLevel()
    llama3.add_special_tokens(["<s>", "<|end|>", AddedToken("<|user|>", rstrip=True), AddedToken("[MASK]", lstrip=True)])
    llama3.post_processor = processors.Sequence([processors.ByteLevel(trim_offsets=False), begin_with("<s>", llama3)])
    yield "llama-3-like", llama3

    digits = pre_tokenizers.Sequence([pre_tokenizers.Digits(True), pre_tokenizers.Punctuation("contiguous"),
                                      pre_tokenizers.ByteLevel(add_prefix_space=True)])
    olmo = byte_level_bpe(texts, digits)
    olmo.normalizer = normalizers.NFC()
    olmo.decoder = decoders.Sequence([decoders.ByteLevel(), decoders.Fuse()])
    olmo.add_tokens([AddedToken("it's", single_word=True, normalized=True), AddedToken("\u1e9b\u0323", normalized=True),
                     AddedToken("[MASK]", normalized=False)])
    olmo.add_special_tokens(["<s>", "</s>"])
    olmo.post_processor = processors.RobertaProcessing(("</s>", olmo.token_to_id("</s>")), ("<s>", olmo.token_to_id("<s>")))
    yield "digits-punctuation", olmo

    falcon = pre_tokenizers.Sequence([pre_tokenizers.Punctuation("merged_with_next"),
                                      pre_tokenizers.ByteLevel(add_prefix_space=False),
                                      pre_tokenizers.Digits(False), pre_tokenizers.Split(Regex("[0-9][0-9][0-9]"), "isolated"),
                                      pre_tokenizers.Split(Regex("[a-c]|\u00c3+"), "merged_with_previous"),
                                      pre_tokenizers.Punctuation("removed")])
    after = byte_level_bpe(texts, falcon)
    after.decoder = decoders.ByteLevel()
    yield "steps-in-the-alphabet", after

    numbers = pre_tokenizers.Split(Regex(r"\p{N}+|\s"), "merged_with_next", invert=True)
    nfkd = byte_level_bpe(texts, pre_tokenizers.Sequence([numbers, pre_tokenizers.ByteLevel(use_regex=False)]))
    nfkd.normalizer = normalizers.Sequence([normalizers.NFKD(), normalizers.Lowercase()])
    nfkd.decoder = decoders.ByteLevel()
    yield "nfkd-lowercase", nfkd


def sentencepiece_family(texts):
    llama2 = sentencepiece_bpe(texts)
    llama2.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"), normalizers.Replace(" ", "\u2581")])
    llama2.decoder = sentencepiece_decoder()
    llama2.post_processor = begin_with("<s>", llama2)
    llama2.add_tokens([AddedToken("<|user|>", rstrip=True, normalized=False), AddedToken("it's", normalized=True),
                       AddedToken(" quick", normalized=True, special=True)])
    yield "llama-2-like", llama2

    few = sentencepiece_bpe(texts, fallback_bytes=[0xCC, 0x81, 0xE2, 0x96, 0x41, 0x42, 0x0A])
    few.normalizer = normalizers.Replace(" ", "\u2581")
    few.decoder = sentencepiece_decoder(strip=False)
    yield "some-fallback-bytes", few
    few = sentencepiece_bpe(texts, fallback_bytes=[0xCC, 0x81, 0x0A], fuse_unk=False)
    few.decoder = sentencepiece_decoder()
    yield "unknown-not-fused", few

    for scheme in ["always", "first", "never"]:
        for split in [False, True]:
            mistral = sentencepiece_bpe(texts)
            mistral.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme=scheme, split=split)
            mistral.decoder = decoders.Metaspace(prepend_scheme=scheme) if split else sentencepiece_decoder(scheme != "never")
            mistral.post_processor = begin_with("<s>", mistral)
            yield f"metaspace-{scheme}{'-split' if split else ''}", mistral

    stripped = sentencepiece_bpe(texts)
    stripped.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.Replace(Regex("^[A-F]|x*"), "")])
    stripped.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.Split("-", "removed"),
                                                      pre_tokenizers.Metaspace(prepend_scheme="first")])
    # The end is stripped first: the reference panics when a token is too short for that.
    stripped.decoder = decoders.Sequence([
        decoders.Strip("o", 0, 1), decoders.Metaspace(), decoders.ByteFallback(), decoders.Strip("h", 1, 0),
        decoders.Replace(Regex("$"), "loh"),
        decoders.Fuse(), decoders.Replace("lo", "o\u2581"), decoders.Replace(Regex("[a-c]|x*"), "-")])
    yield "first-after-removal", stripped

    gemma = sentencepiece_bpe(texts)
    gemma.normalizer = normalizers.Replace(" ", "\u2581")
    gemma.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    gemma.decoder = sentencepiece_decoder(strip=False)
    gemma.add_tokens([AddedToken(text, normalized=False) for text in ["\n", "\n\n", "\u2581\u2581", "\u2581\u2581\u2581"]])
    yield "gemma-like", gemma


def character_family(texts):
    lower = sentencepiece_bpe(texts, fallback_bytes=[], byte_fallback=False)
    lower.normalizer = normalizers.Sequence([normalizers.Strip(), normalizers.NFKC(), normalizers.Lowercase(),
                                             normalizers.Replace(Regex(" {2,}"), " ")])
    lower.pre_tokenizer = pre_tokenizers.Whitespace()
    yield "nfkc-lowercase-whitespace", lower

    nfd = sentencepiece_bpe(texts, fallback_bytes=[], byte_fallback=False, unk_token=None)
    nfd.normalizer = normalizers.Sequence([normalizers.NFD(), normalizers.Strip(left=True, right=False)])
    nfd.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Digits(False),
                                                 pre_tokenizers.Punctuation()])
    yield "nfd-nothing-unknown", nfd

    for prefix, suffix in [("##", ""), ("", "</w>"), ("##", "</w>")]:
        tokenizer = Tokenizer.from_str(json.dumps({"model": affix_bpe(texts, prefix, suffix), "added_tokens": []}))
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        if suffix:
            tokenizer.decoder = decoders.BPEDecoder(suffix)
        yield "-and-".join(["prefix"] * bool(prefix) + ["suffix"] * bool(suffix)), tokenizer


def affix_bpe(texts, prefix, suffix):
    """A "model" with a continuing_subword_prefix and an end_of_word_suffix; the package trains such in an order that varies."""
    words = [[prefix * (i > 0) + c + suffix * (i == len(word) - 1) for i, c in enumerate(word)]
             for text in texts for word in text.split()]
    vocab = ["<unk>", *sorted({symbol for word in words for symbol in word})]
    merges = []
    for _ in range(120):
        pairs = collections.Counter(pair for word in words for pair in zip(word, word[1:]))
        if not pairs:
            break
        left, right = max(pairs, key=lambda pair: (pairs[pair], pair))
        merges.append([left, right])
        merged = left + right[len(prefix):]
        vocab += [merged] if merged not in vocab else []
        for word in words:
            for i in range(len(word) - 2, -1, -1):
                if word[i:i + 2] == [left, right]:
                    word[i:i + 2] = [merged]
    return {"type": "BPE", "unk_token": "<unk>", "continuing_subword_prefix": prefix or None,
            "end_of_word_suffix": suffix or None, "vocab": {token: id for id, token in enumerate(vocab)}, "merges": merges}


def small_tokenizers(random_stream):
    """(name, Tokenizer) of each."""
    texts = corpus(random_stream)
    yield from byte_level_family(texts)
    yield from sentencepiece_family(texts)
    yield from character_family(texts)
    yield from unigram_family(texts)
    yield from word_piece_family(texts, affix_bpe)
    yield from word_level_family(texts)


def large_tokenizers(random_stream):
    """More of them, with what is too large to commit."""
    yield from real_sizes(corpus(random_stream))
