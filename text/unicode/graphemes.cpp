#include "text/unicode/graphemes.h"

#include <algorithm>
#include <cstdint>
#include <iterator>

#include "text/unicode/utf8.h"

namespace sluice::text {
namespace {

// In the order of tests/oracles/tokenizer_unicode.py.
enum class GraphemeClass : uint8_t {
  kOther,
  kControl,
  kExtend,     // of the marks, those that may stand inside a conjunct
  kLinker,     // a mark that joins consonants
  kOtherMark,  // that may not
  kZwj,
  kSpacingMark,
  kPrepend,
  kRegional,
  kHangulL,
  kHangulV,
  kHangulT,
  kHangulLv,
  kHangulLvt,
  kPictograph,
  kConsonant
};

#include "text/unicode/grapheme_classes.inc"

GraphemeClass grapheme_class(char32_t code_point) {
  using enum GraphemeClass;
  constexpr char32_t kFirstSyllable = 0xAC00, kLastSyllable = 0xD7A3, kFinals = 28;
  if (code_point >= kFirstSyllable && code_point <= kLastSyllable)
    return (code_point - kFirstSyllable) % kFinals == 0 ? kHangulLv : kHangulLvt;
  const auto* run = std::upper_bound(std::begin(kGraphemeRuns), std::end(kGraphemeRuns), 16 * code_point + 15);
  return run == std::begin(kGraphemeRuns) ? kOther : static_cast<GraphemeClass>(run[-1] % 16);
}

bool is_grapheme_mark(GraphemeClass kind) {
  using enum GraphemeClass;
  return kind == kExtend || kind == kLinker || kind == kOtherMark || kind == kZwj;
}

// Whether a cluster goes on; looks at its characters one by one.
class Cluster {
 public:
  using enum GraphemeClass;

  explicit Cluster(GraphemeClass first) { take(first); }

  // The rules GB3 to GB13.
  bool goes_on_with(GraphemeClass next) const {
    if (last_ == kControl || next == kControl) return false;
    if (is_grapheme_mark(next) || next == kSpacingMark || last_ == kPrepend) return true;
    if (joins_hangul(next)) return true;
    if (next == kConsonant) return joins_consonant_;
    if (next == kPictograph) return joins_pictograph_;
    return next == kRegional && last_ == kRegional && regionals_ % 2 == 1;
  }

  void take(GraphemeClass next) {
    joins_consonant_ = in_conjunct_ && (next == kLinker || (joins_consonant_ && (next == kExtend || next == kZwj)));
    in_conjunct_ = next == kConsonant || (in_conjunct_ && (next == kLinker || next == kExtend || next == kZwj));
    joins_pictograph_ = in_emoji_ && next == kZwj;
    in_emoji_ = next == kPictograph || (in_emoji_ && is_grapheme_mark(next));
    regionals_ = next == kRegional ? regionals_ + 1 : 0;
    last_ = next;
  }

 private:
  bool joins_hangul(GraphemeClass next) const {
    if (last_ == kHangulL) return next == kHangulL || next == kHangulV || next == kHangulLv || next == kHangulLvt;
    if (last_ == kHangulV || last_ == kHangulLv) return next == kHangulV || next == kHangulT;
    return (last_ == kHangulT || last_ == kHangulLvt) && next == kHangulT;
  }

  GraphemeClass last_ = kOther;
  bool in_conjunct_ = false;      // a consonant, then nothing but linkers and marks
  bool joins_consonant_ = false;  // with a linker among them
  bool in_emoji_ = false;         // a pictograph, then nothing but marks
  bool joins_pictograph_ = false;
  int regionals_ = 0;  // in a row
};

}  // namespace

size_t grapheme_end(std::string_view text, size_t begin) {
  const CodePoint first = code_point_at(text.data() + begin);
  size_t end = begin + first.length;
  if (first.value == U'\r') return end + (text.substr(end).starts_with('\n') ? 1 : 0);
  Cluster cluster(grapheme_class(first.value));
  while (end < text.size()) {
    const CodePoint next = code_point_at(text.data() + end);
    const GraphemeClass kind = grapheme_class(next.value);
    if (!cluster.goes_on_with(kind)) break;
    cluster.take(kind);
    end += next.length;
  }
  return end;
}

}  // namespace sluice::text
