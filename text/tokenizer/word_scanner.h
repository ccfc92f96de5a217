#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "text/unicode/unicode.h"

namespace sluice::text {

/// The patterns by which nearly all byte-level tokenizers cut text, matched by hand: what a regular expression engine gives, many
/// times faster and in linear time on any text. Immutable; copies freely.
class WordScanner {
 public:
  /// GPT-2's words: contractions, letters, numbers or other signs with at most one space before them, then white space, of which
  /// the last blank before a word is left to that word.
  static constexpr std::string_view kGpt2Pattern =
      R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

  /// Llama 3's and OLMo 2's: contractions in either case, letters with at most one sign before them, up to three digits, other
  /// signs with the line ends after them, line ends with the blanks before them, white space as above. Qwen's: one digit.
  static constexpr std::string_view kLlama3Pattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
  static constexpr std::string_view kQwenPattern =
      R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";

  /// The scanner for `pattern`, if it is one of these, letter by letter.
  static std::optional<WordScanner> for_pattern(std::string_view pattern);

  /// The end of the word that begins at `begin` < text.size(). Every text is words from end to end.
  size_t word_end(std::string_view text, size_t begin) const;

 private:
  enum class Rules { kGpt2, kLlama3 };
  WordScanner(Rules rules, size_t most_digits) : rules_(rules), most_digits_(most_digits) {}

  Rules rules_;
  size_t most_digits_;
  const CodePointClasses* classes_ = &CodePointClasses::get();
};

}  // namespace sluice::text
