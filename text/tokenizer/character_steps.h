#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace sluice::text {

// Steps of a Normalizer that look at one character at a time. `text` is well-formed UTF-8. `is_first` becomes false when the
// first character is dropped.

/// `text` without the characters of these `classes` (code_point_class).
std::string without(std::string_view text, uint16_t classes, bool& is_first);

std::string lower_cased(std::string_view text);

/// BertNormalizer's "clean_text": drops control characters, U+0000 and U+FFFD, and writes a blank for any white space.
std::string cleaned_for_bert(std::string_view text, bool& is_first);

/// BertNormalizer's "handle_chinese_chars": a blank on both sides of each ideograph.
std::string spaced_ideographs(std::string_view text);

/// The Nmt step: drops some control characters, and writes a blank for white space and what has no width.
std::string cleaned_for_nmt(std::string_view text, bool& is_first);

}  // namespace sluice::text
