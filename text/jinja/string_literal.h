#pragma once

#include <string>
#include <string_view>

namespace sluice::text::jinja {

/// Python's escapes in what stands between the quotes of a string literal. Null when `literal` could be read, else what is wrong.
const char* unescape(std::string_view literal, std::string& text);

}  // namespace sluice::text::jinja
