#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>

#include "base/function_ref.h"
#include "text/tokenizer/word_scanner.h"
#include "text/unicode/oniguruma.h"
#include "text/unicode/unicode.h"

namespace sluice::text {

class JsonPart;

/// What a step of a tokenizer looks for in text: a string, a regular expression, or characters of a class.
/// Immutable: const use from many threads. Moves, does not copy.
class Matcher {
 public:
  using Match = Regex::Match;
  using OnMatch = FunctionRef<void(Match)>;

  /// A "pattern" of the file: {"String": ...} or {"Regex": ...}. Throws UserError when it is neither, or no valid expression.
  static Matcher read(const JsonPart& pattern);
  static Matcher regex(std::string_view pattern, const std::string& where);
  static Matcher literal(const std::string& text, const std::string& where);

  /// Each code point with one of the `classes` (code_point_class) is a match.
  static Matcher characters(uint16_t classes);

  /// Each run of word characters, and each run of what is neither that nor white space.
  static Matcher words_and_signs();

  /// Calls `on_match` for all matches from left to right, without overlap. `text` is well-formed UTF-8. Throws UserError when a
  /// regular expression backtracks without bound.
  void for_each(std::string_view text, OnMatch on_match) const;

  /// The same matches as in the byte-level alphabet's spelling of `bytes`, but given as ranges of `bytes`.
  void for_each_in_alphabet(std::string_view bytes, OnMatch on_match) const;

 private:
  struct Literal {
    std::string text;
    std::string bytes;  // what it spells in the alphabet; empty if it cannot occur there
  };
  struct Characters {
    uint16_t classes;
  };
  struct WordsAndSigns {};
  struct ThreeDigits {};  // [0-9][0-9][0-9], which Falcon's words are cut by
  using Kind = std::variant<Regex, Literal, Characters, WordsAndSigns, ThreeDigits, WordScanner>;

  explicit Matcher(Kind kind) : kind_(std::move(kind)) {}

  void find(const Regex& regex, std::string_view text, OnMatch on_match) const;
  void find(const Literal& literal, std::string_view text, OnMatch on_match) const;
  void find(const Characters& characters, std::string_view text, OnMatch on_match) const;
  void find(const WordsAndSigns&, std::string_view text, OnMatch on_match) const;
  void find(const ThreeDigits&, std::string_view text, OnMatch on_match) const;
  void find(const WordScanner& scanner, std::string_view text, OnMatch on_match) const;

  Kind kind_;
};

}  // namespace sluice::text
