#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/fallback_bytes.h"

namespace sluice::text {

/// What a word is before any merge: the ids of its characters. Immutable.
class BpeSymbols {
 public:
  struct Settings {
    bool byte_level = false;         // a character is a byte; else it is a code point
    bool byte_fallback = false;      // a code point that the vocabulary lacks becomes the tokens <0x00> to <0xFF> of its bytes
    std::optional<int32_t> unknown;  // stands for a character that the vocabulary lacks; without it such are dropped
    bool fuse_unknown = false;       // one `unknown` for a run of such characters
    std::string continuing_prefix;   // is written before every character of a word but the first
    std::string end_suffix;          // is written after the last
  };

  /// `vocabulary`: token to id; tokens as raw bytes if `byte_level`.
  BpeSymbols(const Settings& settings, const std::unordered_map<std::string, int32_t>& vocabulary);

  /// The ids of the characters of `word` in place of `ids`.
  void load(std::string_view word, std::vector<int32_t>& ids) const;

  /// Whether a character stands for itself wherever it is in the word.
  bool ignores_position() const { return settings_.continuing_prefix.empty() && settings_.end_suffix.empty(); }

  /// Whether the vocabulary has this code point; not for byte-level vocabularies.
  bool has(char32_t code_point) const { return tables_[0].find(code_point) >= 0; }

  /// The bytes that are dropped, in order: below 0x80, and the others too where they stand alone.
  std::string dropped_bytes() const;

 private:
  // Pages of 256 code points; those that no token needs share the first one, which is all -1.
  class Table {
   public:
    Table() : cells_(kPage, -1) {}
    void set(char32_t code_point, int32_t id);
    int32_t find(char32_t code_point) const { return cells_[page_of_[code_point / kPage] * kPage + code_point % kPage]; }

   private:
    static constexpr size_t kPage = 256;
    std::array<uint32_t, 0x110000 / kPage> page_of_{};
    std::vector<int32_t> cells_;
  };

  const Table& table(bool is_first, bool is_last) const { return tables_[ignores_position() ? 0 : 2 * is_first + is_last]; }
  void read_tokens(const std::unordered_map<std::string, int32_t>& vocabulary);
  void read_token(std::string_view token, int32_t id, bool is_first, bool is_last);

  Settings settings_;
  std::vector<Table> tables_;  // [2 * is first + is last], or only one
  FallbackBytes fallback_;
};

}  // namespace sluice::text
