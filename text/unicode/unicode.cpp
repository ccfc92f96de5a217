#include "text/unicode/unicode.h"

#include <algorithm>
#include <iterator>
#include <span>

namespace sluice::text {
namespace {

constexpr char32_t kCapitalIWithDot = 0x130;  // the only letter whose lower case is two code points
constexpr char32_t kDotAbove = 0x307;

struct LowercaseRule {
  char32_t first, last, step;
  int32_t distance;
};

#include "text/unicode/unicode_tables.inc"

void mark(std::vector<uint16_t>& classes, std::span<const char32_t> ranges, uint16_t bit) {
  for (size_t i = 0; i < ranges.size(); i += 2) {
    for (char32_t c = ranges[i]; c <= ranges[i + 1]; ++c) classes[c] |= bit;
  }
}

}  // namespace

CodePointClasses::CodePointClasses() : classes_(kCodePoints) {
  using namespace code_point_class;
  mark(classes_, kLetters, kLetter);
  mark(classes_, kNumbers, kNumber);
  mark(classes_, kSpaces, kSpace);
  mark(classes_, kPunctuationSigns, kPunctuation);
  mark(classes_, kNumericCharacters, kNumeric);
  mark(classes_, kWordCharacters, kWord);
  mark(classes_, kNfcUnsureCharacters, kNfcUnsure);
  mark(classes_, kNormalizedCharacters, kNormalized);
  mark(classes_, kMarks, kMark);
  mark(classes_, kBertAccents, kBertAccent);
  mark(classes_, kBertControls, kBertControl);
}

const CodePointClasses& CodePointClasses::get() {
  static const CodePointClasses kClasses;
  return kClasses;
}

LowerCase lower_case(char32_t code_point) {
  if (code_point == kCapitalIWithDot) return {U'i', kDotAbove};
  const auto* rule = std::upper_bound(std::begin(kLowercase), std::end(kLowercase), code_point,
                                      [](char32_t value, const LowercaseRule& candidate) { return value < candidate.first; });
  if (rule == std::begin(kLowercase)) return {code_point};
  --rule;
  const bool applies = code_point <= rule->last && (code_point - rule->first) % rule->step == 0;
  return {applies ? static_cast<char32_t>(static_cast<int32_t>(code_point) + rule->distance) : code_point};
}

}  // namespace sluice::text
