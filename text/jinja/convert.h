#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// Python's str(value) and repr(value).
std::string text_of(Sandbox& sandbox, const Value& value);
std::string repr_of(Sandbox& sandbox, const Value& value);
/// text_of() appended to `out`, without a copy for a str.
void append_text(Sandbox& sandbox, const Value& value, std::string& out);

/// A float as Python's repr writes it: the shortest digits that read back as the same number.
std::string repr_of(double number);
/// `text` in quotes as Python's repr writes it.
std::string repr_of(std::string_view text);

std::string escaped_html(std::string_view text);

/// What Python's int(text, base) and float(text) read; nothing when they would raise, or when it leaves 64 bits.
std::optional<int64_t> parse_integer(std::string_view text, int base);
std::optional<double> parse_real(std::string_view text);

/// A float without its fraction. Throws Failure for an infinity, a NaN and what leaves 64 bits.
int64_t truncated(double number);

}  // namespace sluice::text::jinja
