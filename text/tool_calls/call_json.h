#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace sluice::text {

/// What is beyond is one more call, with a fault.
inline constexpr size_t kMostCallsOfTurn = 64;

/// Why a text is no JSON, with its place, in words for a model.
std::string reason_of(const UserError& error);

/// Where `mark` stands in `text` outside of the strings of JSON. A string that does not end in its line is none. npos: nowhere,
/// or the mark is empty.
size_t find_outside_strings(std::string_view text, std::string_view mark);

/// Where the JSON object or list that begins at `at` ends, by its brackets; npos: it does not.
size_t end_of_json(std::string_view text, size_t at);

}  // namespace sluice::text
