#!/usr/bin/env python3
"""Writes text/unicode/unicode_tables.inc, unicode_categories.inc and grapheme_classes.inc: what the `tokenizers` package knows
about each character. Version 0.23.3 wrote the committed files.

    python tests/oracles/tokenizer_unicode.py

The package mixes Unicode tables of several ages. These are found out by asking it about every code point.
"""

import pathlib
import unicodedata

from sentencepiece_models import charsmap
from tokenizers import Regex, normalizers, pre_tokenizers

OUTPUT = pathlib.Path(__file__).resolve().parent.parent.parent / "text"
HEADER = "// Written by tests/oracles/tokenizer_unicode.py."
# A category's number is its place; the others are 0.
CATEGORIES = [r"\p{Lu}", r"\p{Ll}", r"\p{Lt}", r"\p{Lm}", r"\p{Lo}", r"\p{M}", r"\p{Nd}", r"[\p{Nl}\p{No}]", r"\p{P}", r"\p{S}"]
ALL = [c for c in range(0x110000) if not 0xD800 <= c < 0xE000]
HANGUL_SYLLABLES = (0xAC00, 0xD7A3)
HANGUL_PARTS = set(range(0x1100, 0x1113)) | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))


def removed(pre_tokenizer):
    """The code points that a pre-tokenizer drops."""
    found = set()
    for begin in range(0, len(ALL), 4096):
        block = ALL[begin:begin + 4096]
        kept = {ord(c) for piece, _ in pre_tokenizer.pre_tokenize_str("".join(map(chr, block))) for c in piece}
        found.update(c for c in block if c not in kept)
    return found


def words():
    """What goes with a letter: \\w of the package's other regex engine."""
    whitespace = pre_tokenizers.Whitespace()
    return {c for c in ALL if len(pieces := whitespace.pre_tokenize_str("a" + chr(c))) == 1 and len(pieces[0][0]) == 2}


def changed(normalizer):
    """Code point to its normal form, where that is another."""
    return {c: form for c in ALL if (form := normalizer.normalize_str(chr(c))) != chr(c)}


def marks(canonical):
    """Code points that canonical ordering moves past U+0345 or U+0334, the marks of the highest and lowest class."""
    nfd = normalizers.NFD()
    high, low = chr(0x345), chr(0x334)
    return {c for c in ALL if c not in canonical and
            (nfd.normalize_str("x" + high + chr(c)) != "x" + high + chr(c) or
             nfd.normalize_str("x" + chr(c) + low) != "x" + chr(c) + low)}


def erased(normalizer, before=""):
    """Code points that leave nothing after `before`."""
    return {c for c in ALL if normalizer.normalize_str(before + chr(c)) == before}


def ranges(code_points, may_fill=lambda c: False):
    """[first, last] pairs; gaps of code points that may be in or out are filled."""
    result = []
    for c in sorted(code_points):
        if result and c - result[-1][1] < 2000 and all(map(may_fill, range(result[-1][1] + 1, c))):
            result[-1][1] = c
        else:
            result.append([c, c])
    return result


def lowercase_rules(mapping):
    """(first, last, step, distance) for every run of letters with the same distance to their lower case."""
    rules = []
    for c, form in sorted(mapping.items()):
        if len(form) != 1:
            continue
        distance = ord(form) - c
        if rules and rules[-1][3] == distance:
            first, last, step, _ = rules[-1]
            if c - last in (1, 2) and (first == last or c - last == step):
                rules[-1] = (first, c, c - last, distance)
                continue
        rules.append((c, c, 1, distance))
    return rules


def lines_of(values):
    line = ""
    for value in values:
        if len(line) + len(value) + 2 > 128:
            yield line
            line = ""
        line += (" " if line else "") + value + ","
    yield line


def table(comment, name, code_points, **options):
    values = (hex(c) for pair in ranges(code_points, **options) for c in pair)
    return [f"// {comment}", f"constexpr char32_t {name}[] = {{", *("    " + line for line in lines_of(values)), "};", ""]


def runs(number_of):
    """16 * code point + number of its first character, for each run of one number; 0 where there is none."""
    last = 0
    for c in ALL:
        number = number_of.get(c, 0)
        if number != last:
            yield 16 * c + number
        last = number


def categories():
    return {c: number for number, pattern in enumerate(CATEGORIES, 1)
            for c in removed(pre_tokenizers.Split(Regex(pattern), "removed"))}


def write_categories():
    text = [f"{HEADER} 16 * first code point + category of each run, in order; the categories are",
            f"// numbered from 1: {' '.join(CATEGORIES)}",
            "constexpr uint32_t kCategoryRuns[] = {", *("    " + line for line in lines_of(map(hex, runs(categories())))), "};"]
    (OUTPUT / "unicode_categories.inc").write_text("\n".join(text) + "\n", encoding="utf8")


def graphemes():
    """Code point to its place in GraphemeClass of text/unicode/graphemes.cpp; those of syllables of Hangul are computed there.

    A charsmap that rewrites `x` drops what follows it in a grapheme of less than six bytes. So \u0300 after it tells whether a
    grapheme begins with it, or is joined to what is before it.
    """
    mapped = ["a", "\u0301", "\u00a9", "\u1100", "\u1161", "\u11a8", "\u0915"]
    normalize = normalizers.Precompiled(charsmap({text: "x" for text in mapped})).normalize_str

    def joined(before, x, mark="\u0300"):
        return {c for c in ALL if not HANGUL_SYLLABLES[0] <= c <= HANGUL_SYLLABLES[1] and
                normalize(before.replace("?", chr(c)) + x + mark).endswith(mark)}

    follows = {c for c in ALL if normalize("a" + chr(c)) == "x"}  # marks of every kind
    control = {c for c in ALL if not normalize(chr(c) + "\u0301\u0300").endswith("\u0300")} - follows - set(map(ord, mapped))
    before_l, before_v, before_t = joined("?", "\u1100"), joined("?", "\u1161"), joined("?", "\u11a8")
    prepend = joined("?", "a", "\u20d0") - follows
    extend = follows & joined("\u00a9?\u200d", "\u00a9")
    in_conjunct = follows & joined("\u0915?\u094d", "\u0915")
    linker = follows & joined("\u0915?", "\u0915")
    classes = [
        control, extend & in_conjunct - linker - {0x200D}, linker, extend - in_conjunct, {0x200D},
        follows - extend - {0x200D}, prepend, set(range(0x1F1E6, 0x1F200)), before_l - prepend, before_v & before_t - before_l,
        before_t - before_v - prepend, set(), set(), joined("?\u200d", "\u00a9") - follows - prepend,
        joined("?\u094d", "\u0915") - follows - prepend]
    return {c: number for number, members in enumerate(classes, 1) for c in members}


def write_graphemes():
    text = [f"{HEADER} 16 * first code point + class of each run, in order.",
            "constexpr uint32_t kGraphemeRuns[] = {", *("    " + line for line in lines_of(map(hex, runs(graphemes())))), "};"]
    (OUTPUT / "grapheme_classes.inc").write_text("\n".join(text) + "\n", encoding="utf8")


def write_tables():
    canonical = changed(normalizers.NFD())
    composed = changed(normalizers.NFC())
    compatible = changed(normalizers.NFKD())
    lowered = changed(normalizers.Lowercase())
    ordered = marks(canonical)
    parts = {ord(c) for form in canonical.values() for c in form}
    followers = {ord(c) for form in canonical.values() for c in form[1:]}
    forever = unicodedata.ucd_3_2_0  # characters that are older than any table in use have one normal form for ever

    long_forms = {c: form for c, form in lowered.items() if len(form) != 1}
    assert long_forms == {0x130: "i\u0307"}, long_forms

    text = [f"{HEADER} Pairs of first and last code point, in order.", ""]
    text += table("\\p{L} of the regular expressions", "kLetters", removed(pre_tokenizers.Split(Regex(r"\p{L}"), "removed")))
    text += table("\\p{N} of the regular expressions", "kNumbers", removed(pre_tokenizers.Split(Regex(r"\p{N}"), "removed")))
    text += table("White space everywhere", "kSpaces", removed(pre_tokenizers.Split(Regex(r"\s"), "removed")))
    text += table("What the Punctuation step cuts at", "kPunctuationSigns", removed(pre_tokenizers.Punctuation("removed")))
    text += table("What the Digits step cuts at", "kNumericCharacters",
                  {c for c in ALL if len(pre_tokenizers.Digits(True).pre_tokenize_str("x" + chr(c))) == 2})
    text += table("\\w of the Whitespace step and of single_word", "kWordCharacters", words())
    text += table("Not surely in normal form C among characters that are: changes, moves, or joins what is before it",
                  "kNfcUnsureCharacters", set(composed) | ordered | followers)
    text += table("All that normalisation moves, takes apart or joins, and some that it does not touch", "kNormalizedCharacters",
                  set(compatible) | ordered | parts | HANGUL_PARTS, may_fill=lambda c: forever.category(chr(c)) != "Cn")
    accents = normalizers.BertNormalizer(clean_text=False, handle_chinese_chars=False, strip_accents=True, lowercase=False)
    cleaned = normalizers.BertNormalizer(clean_text=True, handle_chinese_chars=False, strip_accents=False, lowercase=False)
    text += table("What the StripAccents step drops", "kMarks", erased(normalizers.StripAccents()))
    text += table("What BertNormalizer drops as accents, decomposed", "kBertAccents", erased(accents))
    text += table("What BertNormalizer drops as no text", "kBertControls", erased(cleaned, "a"))
    rules = (f"{{{first:#x}, {last:#x}, {step}, {distance}}}" for first, last, step, distance in lowercase_rules(lowered))
    text += ["// Every `step`th code point from first to last has its lower case `distance` further on.",
             "constexpr LowercaseRule kLowercase[] = {", *("    " + line for line in lines_of(rules)), "};"]
    (OUTPUT / "unicode_tables.inc").write_text("\n".join(text) + "\n", encoding="utf8")


def main():
    write_tables()
    write_categories()
    write_graphemes()


if __name__ == "__main__":
    main()
