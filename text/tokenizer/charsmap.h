#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

/// SentencePiece's "precompiled charsmap": strings and what is written for them, as a double-array trie over bytes.
/// Immutable: const use from many threads.
class Charsmap {
 public:
  /// `bytes`: the size of the trie, its units, then the replacements, each ended by a NUL; numbers are little-endian. `where`
  /// names the map in messages. Throws UserError when it is malformed.
  Charsmap(std::string_view bytes, std::string where);

  /// `text`, well-formed UTF-8, as the `tokenizers` package rewrites it: a grapheme of less than 6 bytes becomes the
  /// replacement of the shortest string that it begins with, whatever else it holds; of others each character does. Throws
  /// UserError when the map leads to no character.
  std::string apply(std::string_view text) const;

  /// As SentencePiece itself does: at each place the longest string that is found there becomes its replacement.
  std::string apply_longest(std::string_view text) const;

 private:
  static constexpr uint32_t kNone = UINT32_MAX;

  struct Found {
    uint32_t replacement = kNone;  // where it begins
    size_t length = 0;             // of what it replaces
  };
  template <class OnFound>
  void find_all(std::string_view text, OnFound on_found) const;
  uint32_t find(std::string_view text) const;
  std::string_view replacement(uint32_t begin) const;
  void write(std::string_view part, uint32_t found, size_t size, std::string& result) const;

  std::string where_;
  std::vector<uint32_t> units_;
  std::string replacements_;
  std::vector<uint32_t> of_ascii_;  // [byte]
};

}  // namespace sluice::text
