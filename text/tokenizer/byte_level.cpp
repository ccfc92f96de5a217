#include "text/tokenizer/byte_level.h"

#include <array>
#include <cstdint>

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

char32_t byte_alphabet_character(unsigned char byte) { return kCharacters[byte]; }

}  // namespace sluice::text
