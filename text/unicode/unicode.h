#pragma once

#include <cstdint>
#include <vector>

namespace sluice::text {

constexpr char32_t kCodePoints = 0x110000;  // of all of Unicode

/// What tokenizers ask about a code point; several may hold at once.
namespace code_point_class {
constexpr uint16_t kLetter = 1;          // \p{L}
constexpr uint16_t kNumber = 2;          // \p{N} of regular expressions
constexpr uint16_t kSpace = 4;           // \s
constexpr uint16_t kPunctuation = 8;     // what the Punctuation step cuts at: Unicode's P and all ASCII signs
constexpr uint16_t kNumeric = 16;        // what the Digits step cuts at
constexpr uint16_t kWord = 32;           // \w, of the steps that have no pattern of their own
constexpr uint16_t kNfcUnsure = 64;      // text without these is in normal form C
constexpr uint16_t kNormalized = 128;    // takes part in normalisation; all others pass through every normal form, and part it
constexpr uint16_t kMark = 256;          // what the StripAccents step drops
constexpr uint16_t kBertAccent = 512;    // what BertNormalizer drops as accents
constexpr uint16_t kBertControl = 1024;  // what it drops as no text
}  // namespace code_point_class

/// The classes of every code point, as the `tokenizers` package sees them: its steps use Unicode tables of several ages, and ids
/// can only be equal when each step has its own. Immutable, one for the process, 2.2 MB.
class CodePointClasses {
 public:
  static const CodePointClasses& get();

  /// `code_point` <= 0x10FFFF.
  uint16_t operator[](char32_t code_point) const { return classes_[code_point]; }

 private:
  CodePointClasses();

  std::vector<uint16_t> classes_;
};

/// The lower case of one code point by itself, as one or two code points; the second is 0 if there is only one.
struct LowerCase {
  char32_t first = 0;
  char32_t second = 0;
};
LowerCase lower_case(char32_t code_point);

}  // namespace sluice::text
