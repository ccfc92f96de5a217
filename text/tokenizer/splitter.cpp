#include "text/tokenizer/splitter.h"

#include "base/text/strings.h"
#include "text/tokenizer/tokenizer_json.h"

namespace sluice::text {
namespace {

using Behavior = Splitter::Behavior;

constexpr const char* kBehaviors = "Isolated, Removed, MergedWithPrevious, MergedWithNext, Contiguous";

// Joins neighbouring segments as the behaviour asks, and hands on what cannot grow any more.
class Joiner {
 public:
  Joiner(Piece piece, Behavior behavior, PieceSink sink) : piece_(piece), behavior_(behavior), sink_(sink) {}

  void add(size_t begin, size_t end, bool is_match) {
    if (has_open_ && joins(is_match)) {
      end_ = end;
    } else {
      flush();
      begin_ = begin;
      end_ = end;
      has_open_ = !(behavior_ == Behavior::kRemoved && is_match);
    }
    after_match_ = is_match;
  }

  void flush() {
    if (has_open_ && begin_ < end_) sink_({piece_.text.substr(begin_, end_ - begin_), piece_.is_first && begin_ == 0});
    has_open_ = false;
  }

 private:
  // Two matches in a row are only joined by kContiguous.
  bool joins(bool is_match) const {
    switch (behavior_) {
      case Behavior::kIsolated:
      case Behavior::kRemoved:
        return false;
      case Behavior::kMergedWithPrevious:
        return is_match && !after_match_;
      case Behavior::kMergedWithNext:
        return !is_match && after_match_;
      case Behavior::kContiguous:
        return is_match == after_match_;
    }
    return false;
  }

  Piece piece_;
  Behavior behavior_;
  PieceSink sink_;
  size_t begin_ = 0, end_ = 0;
  bool has_open_ = false;
  bool after_match_ = false;
};

}  // namespace

void Splitter::split(Piece piece, bool in_alphabet, PieceSink sink) const {
  Joiner joiner(piece, behavior_, sink);
  size_t done = 0;
  const auto add_match = [&](Matcher::Match match) {
    if (done < match.begin) joiner.add(done, match.begin, invert_);
    joiner.add(match.begin, match.end, !invert_);
    done = match.end;
  };
  if (in_alphabet) {
    matcher_.for_each_in_alphabet(piece.text, add_match);
  } else {
    matcher_.for_each(piece.text, add_match);
  }
  if (done < piece.text.size()) joiner.add(done, piece.text.size(), invert_);
  joiner.flush();
}

Splitter::Behavior read_behavior(const JsonPart& part) {
  const std::string& name = part.string();
  if (name == "Isolated") return Behavior::kIsolated;
  if (name == "Removed") return Behavior::kRemoved;
  if (name == "MergedWithPrevious") return Behavior::kMergedWithPrevious;
  if (name == "MergedWithNext") return Behavior::kMergedWithNext;
  if (name == "Contiguous") return Behavior::kContiguous;
  part.fail_unsupported("behavior " + sluice::quoted(name), kBehaviors);
}

}  // namespace sluice::text
