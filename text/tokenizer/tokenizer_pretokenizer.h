#pragma once

#include <string_view>
#include <variant>
#include <vector>

#include "text/tokenizer/metaspace.h"
#include "text/tokenizer/splitter.h"

namespace sluice::text {

class JsonPart;

/// The "pre_tokenizer" of a tokenizer.json: cuts text into the words that byte-pair encoding works on. Immutable.
/// Without steps the whole text is one word. There is at most one ByteLevel. Steps before it see the text, steps after it see the
/// word in the byte-level alphabet.
class PreTokenizer {
 public:
  /// `part` may be null. Throws UserError for an unknown type, a bad pattern, a second ByteLevel, or too many steps.
  explicit PreTokenizer(const JsonPart& part);

  /// Whether the words are bytes for a vocabulary in the byte-level alphabet; else they are text.
  bool is_byte_level() const { return is_byte_level_; }

  /// Hands the words to `sink`, in order: as raw bytes, whether or not they are spelled in the alphabet. They live only during
  /// the call.
  void for_each_word(Piece text, FunctionRef<void(std::string_view)> sink) const;

 private:
  struct PrefixSpace {};  // a blank before a piece that has none
  struct SplitStep {
    Splitter splitter;
    bool in_alphabet;
  };
  using Step = std::variant<SplitStep, PrefixSpace, MetaspaceStep>;

  void read(const JsonPart& part);
  void read_byte_level(const JsonPart& part);
  void add_split(Splitter splitter);
  void run(size_t step, Piece piece, FunctionRef<void(std::string_view)> sink) const;

  std::vector<Step> steps_;
  bool is_byte_level_ = false;
};

}  // namespace sluice::text
