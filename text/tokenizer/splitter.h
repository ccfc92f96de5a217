#pragma once

#include <string_view>

#include "base/function_ref.h"
#include "text/tokenizer/matcher.h"

namespace sluice::text {

class JsonPart;

/// A part of a text on its way to the model.
struct Piece {
  std::string_view text;
  bool is_first = false;  // begins where the text that is encoded begins
};
using PieceSink = FunctionRef<void(Piece)>;

/// Cuts text where a pattern matches. Immutable.
class Splitter {
 public:
  /// What becomes of the matches: pieces of their own, dropped, the end of the piece before, the start of the piece after, or
  /// one piece a run of matches.
  enum class Behavior { kIsolated, kRemoved, kMergedWithPrevious, kMergedWithNext, kContiguous };

  /// With `invert` what lies between the matches counts as match.
  Splitter(Matcher matcher, Behavior behavior, bool invert = false)
      : matcher_(std::move(matcher)), behavior_(behavior), invert_(invert) {}

  /// Hands the non-empty parts of `piece` to `sink`, in order; they point into it.
  /// With `in_alphabet` the cuts are those of the piece's spelling in the byte-level alphabet.
  void split(Piece piece, bool in_alphabet, PieceSink sink) const;

 private:
  Matcher matcher_;
  Behavior behavior_;
  bool invert_;
};

/// The "behavior" of a step. Throws UserError for an unknown one.
Splitter::Behavior read_behavior(const JsonPart& part);

}  // namespace sluice::text
