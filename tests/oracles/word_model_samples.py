"""Small Unigram, WordPiece and WordLevel tokenizers, of the parts that T5, XLM-R, ALBERT and BERT are made of. For
tokenizer_samples.py."""

import random

import sentencepiece_models
from sentencepiece_models import charsmap, pieces
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors


def around(tokenizer, template):
    """A post-processor that puts special tokens around $A."""
    names = [name for name in template.split(" ") if name != "$A"]
    special = [(name, tokenizer.token_to_id(name)) for name in names]
    return processors.TemplateProcessing(single=template, special_tokens=special)


def unigram(vocabulary, normalizer=None, pre_tokenizer=None, decoder=None, template=None, special=(), **model):
    unknown = [token for token, _ in vocabulary].index("<unk>")
    tokenizer = Tokenizer(models.Unigram(vocabulary, unk_id=unknown, **({"byte_fallback": False} | model)))
    if normalizer is not None:
        tokenizer.normalizer = normalizer
    if pre_tokenizer is not None:
        tokenizer.pre_tokenizer = pre_tokenizer
    tokenizer.decoder = decoder or decoders.Metaspace()
    tokenizer.add_special_tokens(list(special))
    if template:
        tokenizer.post_processor = around(tokenizer, template)
    return tokenizer


def words_with_blanks(scheme="always"):
    return pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(prepend_scheme=scheme)])


def t5(texts, rules, **training):
    ids = {"pad_id": 0, "eos_id": 1, "unk_id": 2, "bos_id": -1}
    vocabulary = pieces(sentencepiece_models.train(texts, "unigram", rules, **ids, **training))
    return unigram(vocabulary + [("<extra_id_1>", 0.0), ("<extra_id_0>", 0.0)], normalizers.Precompiled(charsmap(rules)),
                   words_with_blanks(), template="$A </s>", special=["</s>", "<pad>", "<extra_id_0>", "<extra_id_1>"])


def xlm_r(texts, rules, **training):
    vocabulary = pieces(sentencepiece_models.train(texts, "unigram", rules, **training))
    fairseq = [("<s>", 0.0), ("<pad>", 0.0), ("</s>", 0.0), ("<unk>", 0.0)]
    return unigram(fairseq + vocabulary[3:] + [("<mask>", 0.0)],
                   normalizers.Sequence([normalizers.Precompiled(charsmap(rules)), normalizers.Replace(Regex(" {2,}"), " ")]),
                   pre_tokenizers.Metaspace(), template="<s> $A </s>",
                   special=["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True, normalized=True)])


def albert(texts, rules, **training):
    vocabulary = pieces(sentencepiece_models.train([text.lower() for text in texts], "unigram", rules,
                                                   control_symbols="[CLS],[SEP],[MASK]", **training))
    steps = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"'), normalizers.NFKD(), normalizers.StripAccents(),
             normalizers.Lowercase(), normalizers.Precompiled(charsmap(rules)), normalizers.Replace(Regex(" {2,}"), " ")]
    return unigram(vocabulary, normalizers.Sequence(steps), words_with_blanks(), template="[CLS] $A [SEP]",
                   special=["[CLS]", "[SEP]", "<unk>", AddedToken("[MASK]", lstrip=True)])


def with_bytes(texts, fallback_bytes, **training):
    vocabulary = pieces(sentencepiece_models.train(texts, "unigram", **training))
    vocabulary += [(f"<0x{byte:02X}>", 0.0) for byte in fallback_bytes]
    decoder = decoders.Sequence([decoders.Replace("\u2581", " "), decoders.ByteFallback(), decoders.Fuse(),
                                 decoders.Strip(" ", 1, 0)])
    return unigram(vocabulary, normalizers.Sequence([normalizers.Nmt(), normalizers.Strip(left=False)]),
                   pre_tokenizers.Metaspace(prepend_scheme="first", split=False), decoder, special=["<s>"], byte_fallback=True)


def ties(texts, seed):
    """Scores that often add up to the same; tokens that are there twice, and some that are better than all their parts."""
    stream = random.Random(seed)
    words = sorted({word for text in texts for word in text.split()})
    tokens = ["<unk>", "\u2581", *"abcdefhilmnorstuwxy01245-.!"]
    for word in words:
        begin = stream.randrange(len(word))
        tokens += [word[begin:begin + stream.randrange(1, 4)], "\u2581" + word[:stream.randrange(1, 3)]]
    scores = [-1.0, -2.0, -2.5, -3.0, 1.0, -0.1, -0.30000000000000004, *(-10 * stream.random() for _ in range(12))]
    vocabulary = [(token, 0.0 if token == "<unk>" else stream.choice(scores)) for token in tokens]
    return unigram(vocabulary, normalizers.Replace(" ", "\u2581"),
                   pre_tokenizers.CharDelimiterSplit("\u2581") if seed % 2 else None)


def word_piece(vocabulary, normalizer, prefix="##", most=100, cleanup=True):
    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    tokens = [*special, *(token for token in vocabulary if token not in special)]
    tokenizer = Tokenizer(models.WordPiece({token: id for id, token in enumerate(tokens)}, unk_token="[UNK]",
                                           continuing_subword_prefix=prefix, max_input_chars_per_word=most))
    tokenizer.normalizer = normalizer
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece(prefix=prefix, cleanup=cleanup)
    tokenizer.add_special_tokens(special)
    tokenizer.post_processor = around(tokenizer, "[CLS] $A [SEP]")
    return tokenizer


def unigram_family(texts):
    rules = sentencepiece_models.SOME_RULES
    yield "t5-like", t5(texts, rules)
    yield "xlm-r-like", xlm_r(texts, rules)
    yield "albert-like", albert(texts, rules)
    yield "unigram-bytes", with_bytes(texts, range(256))
    yield "unigram-some-bytes", with_bytes(texts, [0xCC, 0x81, 0xE2, 0x96, 0x41, 0x42, 0x0A])
    yield "unigram-ties", ties(texts, 1)
    yield "unigram-ties-whole-text", ties(texts, 2)


def word_piece_family(texts, affix_bpe):
    """`affix_bpe`: of tokenizer_samples.py; its tokens are those of a WordPiece model."""
    signs = list("!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~0123456789")
    lower = [*signs, *affix_bpe([text.lower() for text in texts], "##", "")["vocab"]]
    cased = [*signs, *affix_bpe(texts, "##", "")["vocab"]]
    yield "bert-uncased-like", word_piece(lower, normalizers.BertNormalizer())
    yield "bert-cased-like", word_piece(cased, normalizers.BertNormalizer(lowercase=False))
    yield "bert-accents", word_piece(cased, normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False,
                                                                       strip_accents=True, lowercase=False), most=5)
    yield "word-piece-no-prefix", word_piece([*signs, *affix_bpe(texts, "", "")["vocab"]], normalizers.Lowercase(), prefix="",
                                             cleanup=False)


def word_level(words, normalizer, pre_tokenizer, template=None):
    tokens = ["[UNK]", "[CLS]", "[SEP]", *(word for word in words if word)]
    tokenizer = Tokenizer(models.WordLevel({token: id for id, token in enumerate(dict.fromkeys(tokens))}, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizer, pre_tokenizer
    tokenizer.add_special_tokens(["[UNK]", "[CLS]", "[SEP]"])
    if template:
        tokenizer.post_processor = around(tokenizer, template)
    return tokenizer


def word_level_family(texts):
    """Half of the words are known, and single characters."""
    words = sorted({word for text in texts for word in text.split()})
    yield "word-level-lower", word_level([*"abcdefghij0123456789.,!", *(word.lower() for word in words[::2])],
                                         normalizers.Lowercase(), pre_tokenizers.Whitespace(), "[CLS] $A [SEP]")
    apart = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Punctuation(), pre_tokenizers.Digits(True)])
    signs = [*"!'*+,-./:;<=>?@_0123456789\u4e2d\u00e9", "\U0001f600", "s", "t", "ll", "\u00e9\u0301"]
    yield "word-level-signs", word_level([*words, *signs], normalizers.NFC(), apart)


def real_sizes(texts):
    """With SentencePiece's own maps: too large for the committed files."""
    yield "t5-nmt-nfkc", t5(texts, "nmt_nfkc", vocab_size=2000)
    yield "xlm-r-nmt-nfkc", xlm_r(texts, "nmt_nfkc", vocab_size=2000)
    yield "albert-nmt-nfkc-cf", albert(texts, "nmt_nfkc_cf", vocab_size=2000)
