#pragma once

#include <cstddef>
#include <string>
#include <string_view>

/// What Python's str knows of characters, on UTF-8. Texts must be UTF-8; characters are those of the installed utf8proc.
namespace sluice::text::jinja::unicode {

/// Code points of `text`.
size_t length(std::string_view text);

/// The byte at which code point `index` begins; text.size() at or past the end.
size_t offset_of(std::string_view text, size_t index);

/// The code point at byte `position`, which moves after it.
char32_t next(std::string_view text, size_t& position);
/// The code point that ends before byte `end`, which moves before it.
char32_t previous(std::string_view text, size_t& end);

std::u32string decode(std::string_view text);
std::string encode(std::u32string_view text);

bool is_space(char32_t c);
bool is_alpha(char32_t c);
bool is_decimal(char32_t c);
bool is_digit(char32_t c);
bool is_numeric(char32_t c);
bool is_alnum(char32_t c);
bool is_upper(char32_t c);
bool is_lower(char32_t c);
bool is_title(char32_t c);
bool is_printable(char32_t c);
bool is_identifier_start(char32_t c);
bool is_identifier_part(char32_t c);

/// The whole mappings: one character may become several.
std::string upper(std::string_view text);
std::string lower(std::string_view text);
std::string capitalize(std::string_view text);
std::string title(std::string_view text);
std::string swap_case(std::string_view text);
std::string fold_case(std::string_view text);

/// Without white space (of Unicode), or without the characters of `characters`, at its ends.
std::string_view strip(std::string_view text, bool left, bool right);
std::string_view strip(std::string_view text, std::u32string_view characters, bool left, bool right);

}  // namespace sluice::text::jinja::unicode
