"""What SentencePiece makes: maps that rewrite text, and models."""

import io
import pathlib
import tempfile

import sentencepiece
from sentencepiece import sentencepiece_model_pb2

# Something of every kind: white space, ligatures, one to many, many to one, nothing, and what graphemes may begin with.
SOME_RULES = {
    "\u00a0": " ", "\u3000": " ", "\u2028": " ", "\u0085": " ", "\n": " ", "\t": " ", "\r": " ", "\u200d": "", "\ufeff": "",
    "\ufb01": "fi", "\u1e9b\u0323": "\u1e69", "e\u0301": "\u00e9", "\uff9e": "\u3099", "\u00b2": "2",
    "\u00bd": "1\u20442", "\u2167": "VIII", "\u1112\u1161\u11ab": "\ud55c", "\u1112\u1161": "\ud558", "\u0344": "\u0308\u0301",
    "\u0958": "\u0915\u093c", "\ufdfa": "\u0635\u0644\u0649 \u0627\u0644\u0644\u0647 \u0639\u0644\u064a\u0647",
    "\u00a9": "(c)", "\U0001f469": "W", "\u0915": "K", "Z": "zz", "\u0663": "3", "\u30ab": "\u304b", "\u0e33": "\u0e4d\u0e32",
    "\u017f": "s", "\u0301": "'", "!!": "!",
}


def charsmap(rules):
    """The compiled map of `rules`: a name that SentencePiece knows, or text to what is written for it."""
    with tempfile.TemporaryDirectory() as folder:
        normalizer = sentencepiece.SentencePieceNormalizer(**rule_options(rules, folder))
    return parsed(normalizer.serialized_model_proto()).normalizer_spec.precompiled_charsmap


def rule_options(rules, folder, prefix=""):
    if isinstance(rules, str):
        return {prefix + "rule_name": rules}
    path = pathlib.Path(folder) / "rules.tsv"
    spelled = [[" ".join(f"{ord(c):X}" for c in side) for side in rule] for rule in rules.items()]
    path.write_text("".join("\t".join(rule) + "\n" for rule in spelled), encoding="utf8")
    return {prefix + "rule_tsv": str(path)}


def parsed(serialized):
    model = sentencepiece_model_pb2.ModelProto()
    model.ParseFromString(serialized)
    return model


def train(texts, model_type, rules="identity", vocab_size=400, **options):
    """A model as its file has it. The same texts give the same bytes."""
    written = io.BytesIO()
    with tempfile.TemporaryDirectory() as folder:
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(texts), model_writer=written, model_type=model_type, vocab_size=vocab_size, num_threads=1,
            character_coverage=1.0, hard_vocab_limit=False, minloglevel=2, **rule_options(rules, folder, "normalization_"),
            **options)
    return written.getvalue()


def pieces(model):
    """(piece, score) of each, as a Unigram model wants them."""
    return [(piece.piece, piece.score) for piece in parsed(model).pieces]
