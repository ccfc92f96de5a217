#pragma once

#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/oniguruma.h"
#include "text/tokenizer_json.h"

namespace sluice::text {

/// Cuts text where a pattern matches. Immutable.
class Splitter {
 public:
  /// What becomes of the matches: pieces of their own, dropped, the end of the piece before, the start of the piece after, or
  /// one piece a run of matches.
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

  /// With `invert` what lies between the matches counts as match.
  Splitter(Regex pattern, Behavior behavior, bool invert = false)
      : pattern_(std::move(pattern)), behavior_(behavior), invert_(invert) {}

  /// Appends the non-empty pieces of `text`, in order; they point into it.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Segment {
    Regex::Match range;
    bool is_match = false;
  };
  std::vector<Segment> segments(std::string_view text) const;
  void join(std::vector<Segment>& segments) const;

  Regex pattern_;
  Behavior behavior_;
  bool invert_;
};

/// The "pre_tokenizer" of a tokenizer.json: cuts text into the words that byte-pair encoding works on. Immutable.
/// There is exactly one ByteLevel step. Steps before it see the text, steps after it see the word in the byte-level alphabet.
class PreTokenizer {
 public:
  /// Throws UserError for an unknown type, a bad pattern, or without exactly one ByteLevel.
  explicit PreTokenizer(const JsonPart& part);

  /// The words as raw bytes, in order. They point into `text` or into `storage`, which the caller keeps as long.
  std::vector<std::string_view> words(std::string_view text, std::deque<std::string>& storage) const;

 private:
  void read(const JsonPart& part);
  void read_byte_level(const JsonPart& part);
  void add_step(Splitter splitter);
  void split_in_alphabet(std::string_view word, std::vector<std::string_view>& words) const;

  std::vector<Splitter> before_;
  bool has_byte_level_ = false;
  bool add_prefix_space_ = false;
  std::optional<Splitter> byte_level_words_;
  std::vector<Splitter> after_;
};

}  // namespace sluice::text
