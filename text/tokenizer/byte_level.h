#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace sluice::text {

// The byte-level alphabet writes each of the 256 bytes as one printable character, so that a vocabulary of any bytes is JSON.
// A printable Latin-1 byte stands for itself; the other 68, in order, are U+0100 to U+0143: space is U+0120, line feed U+010A.
// Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners", section 2.2.

/// `bytes` written in the alphabet, as UTF-8.
std::string to_byte_alphabet(std::string_view bytes);

/// The bytes that UTF-8 `text` stands for, or nothing if some character is not in the alphabet.
std::optional<std::string> from_byte_alphabet(std::string_view text);

/// The character that stands for `byte`.
char32_t byte_alphabet_character(unsigned char byte);

}  // namespace sluice::text
