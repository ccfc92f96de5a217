#include "text/byte_level.h"

#include <algorithm>
#include <array>
#include <cstdint>

#include "base/strings.h"

namespace sluice::text {
namespace {

constexpr int kFirstStandIn = 0x100;
constexpr int kAlphabetEnd = 0x144;  // 68 bytes need a stand-in

constexpr bool stands_for_itself(int byte) { return (byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte != 0xAD); }

constexpr std::array<uint16_t, 256> make_characters() {
  std::array<uint16_t, 256> characters{};
  int stand_in = kFirstStandIn;
  for (int byte = 0; byte < 256; ++byte) characters[byte] = static_cast<uint16_t>(stands_for_itself(byte) ? byte : stand_in++);
  return characters;
}

constexpr auto kCharacters = make_characters();  // [byte] -> code point

constexpr std::array<int16_t, kAlphabetEnd> make_bytes() {
  std::array<int16_t, kAlphabetEnd> bytes{};
  for (auto& byte : bytes) byte = -1;
  for (int byte = 0; byte < 256; ++byte) bytes[kCharacters[byte]] = static_cast<int16_t>(byte);
  return bytes;
}

constexpr auto kBytes = make_bytes();  // [code point] -> byte, or -1

bool is_continuation(unsigned char byte) { return (byte & 0xC0) == 0x80; }

// What may follow the lead byte of a sequence (Unicode table 3-7). ASCII has length 1 and no followers; length 0: leads nothing.
struct Lead {
  size_t length;
  unsigned char second_from = 0x80;
  unsigned char second_to = 0xBF;
};

Lead lead_of(unsigned char byte) {
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
    const bool fits = length == 1 ? byte >= lead.second_from && byte <= lead.second_to : is_continuation(byte);
    if (!fits) break;
    ++length;
  }
  return length;
}

}  // namespace

std::string to_byte_alphabet(std::string_view bytes) {
  std::string text;
  text.reserve(bytes.size() + bytes.size() / 2);
  for (const char byte : bytes) {
    const unsigned character = kCharacters[static_cast<unsigned char>(byte)];
    if (character < 0x80) {
      text += static_cast<char>(character);
    } else {
      text += static_cast<char>(0xC0 | (character >> 6));
      text += static_cast<char>(0x80 | (character & 0x3F));
    }
  }
  return text;
}

std::optional<std::string> from_byte_alphabet(std::string_view text) {
  std::string bytes;
  for (size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    int character = lead;
    if (lead >= 0x80) {
      if (lead >= 0xE0 || i + 1 == text.size()) return std::nullopt;
      character = (lead & 0x1F) << 6 | (text[i + 1] & 0x3F);
    }
    if (character >= kAlphabetEnd || kBytes[character] < 0) return std::nullopt;
    bytes += static_cast<char>(kBytes[character]);
    i += lead < 0x80 ? 1 : 2;
  }
  return bytes;
}

size_t count_code_points(std::string_view text) {
  return static_cast<size_t>(
      std::count_if(text.begin(), text.end(), [](char byte) { return !is_continuation(static_cast<unsigned char>(byte)); }));
}

std::string replace_invalid_utf8(std::string_view bytes) {
  if (is_utf8(bytes)) return std::string(bytes);
  std::string text;
  for (size_t i = 0; i < bytes.size();) {
    const Lead lead = lead_of(static_cast<unsigned char>(bytes[i]));
    const size_t length = sequence_prefix(bytes.substr(i), lead);
    text += length == lead.length ? bytes.substr(i, length) : std::string_view("\xEF\xBF\xBD");
    i += length;
  }
  return text;
}

}  // namespace sluice::text
