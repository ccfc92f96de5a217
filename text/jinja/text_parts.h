#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

// Python's ways to cut a str, on UTF-8. `limit` < 0: without one.

/// `characters`: a str whose characters go, or missing or None for white space.
std::string stripped(Sandbox& sandbox, std::string_view text, const Value& characters, bool left, bool right);
std::string replaced(Sandbox& sandbox, std::string_view text, std::string_view old, std::string_view fresh, int64_t limit);
std::vector<std::string_view> split_words(Sandbox& sandbox, std::string_view text, int64_t limit, bool from_end);
std::vector<std::string_view> split_text(Sandbox& sandbox, std::string_view text, std::string_view separator, int64_t limit,
                                         bool from_end);
/// At every line break that Unicode knows.
std::vector<std::string_view> split_lines(Sandbox& sandbox, std::string_view text, bool keep_ends);

}  // namespace sluice::text::jinja
