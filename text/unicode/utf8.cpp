#include "text/unicode/utf8.h"

#include <algorithm>

#include "base/text/strings.h"

namespace sluice::text {
namespace {

constexpr std::string_view kReplacement = "\xEF\xBF\xBD";
constexpr size_t kLongestSequence = 4;

// What may follow the lead byte of a sequence (Unicode table 3-7). ASCII has length 1 and no followers; length 0: leads nothing.
struct Lead {
  size_t length;
  unsigned char second_from = 0x80;
  unsigned char second_to = 0xBF;
};

Lead lead_of(char lead) {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return {1};
  if (byte < 0xC2) return {0};
  if (byte < 0xE0) return {2};
  if (byte == 0xE0) return {3, 0xA0, 0xBF};  // below: overlong
  if (byte == 0xED) return {3, 0x80, 0x9F};  // above: surrogates
  if (byte < 0xF0) return {3};
  if (byte == 0xF0) return {4, 0x90, 0xBF};  // below: overlong
  if (byte < 0xF4) return {4};
  if (byte == 0xF4) return {4, 0x80, 0x8F};  // above: beyond U+10FFFF
  return {0};
}

// Bytes of `rest`, at least one, that are a sequence or as much of one as there is.
size_t sequence_prefix(std::string_view rest, const Lead& lead) {
  size_t length = 1;
  while (length < lead.length && length < rest.size()) {
    const auto byte = static_cast<unsigned char>(rest[length]);
    const bool fits = length == 1 ? byte >= lead.second_from && byte <= lead.second_to : is_continuation(rest[length]);
    if (!fits) break;
    ++length;
  }
  return length;
}

}  // namespace

CodePoint last_code_point(std::string_view text) {
  size_t begin = text.size() - 1;
  while (begin > 0 && is_continuation(text[begin])) --begin;
  return code_point_at(text.data() + begin);
}

void append_utf8(char32_t code_point, std::string& text) {
  const auto append = [&text](char32_t byte) { text += static_cast<char>(byte); };
  if (code_point < 0x80) {
    append(code_point);
  } else if (code_point < 0x800) {
    append(0xC0 | code_point >> 6);
    append(0x80 | (code_point & 0x3F));
  } else if (code_point < 0x10000) {
    append(0xE0 | code_point >> 12);
    append(0x80 | (code_point >> 6 & 0x3F));
    append(0x80 | (code_point & 0x3F));
  } else {
    append(0xF0 | code_point >> 18);
    append(0x80 | (code_point >> 12 & 0x3F));
    append(0x80 | (code_point >> 6 & 0x3F));
    append(0x80 | (code_point & 0x3F));
  }
}

std::string replace_invalid_utf8(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const Lead lead = lead_of(bytes[i]);
    const size_t length = sequence_prefix(bytes.substr(i), lead);
    text += length == lead.length ? bytes.substr(i, length) : kReplacement;
    i += length;
  }
  return text;
}

size_t unfinished_utf8(std::string_view bytes) {
  const size_t most = std::min(bytes.size(), kLongestSequence - 1);
  for (size_t length = 1; length <= most; ++length) {
    const std::string_view end = bytes.substr(bytes.size() - length);
    if (is_continuation(end.front())) continue;
    const Lead lead = lead_of(end.front());
    return length < lead.length && sequence_prefix(end, lead) == length ? length : 0;
  }
  return 0;
}

}  // namespace sluice::text
