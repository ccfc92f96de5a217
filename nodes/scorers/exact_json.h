#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"

/// JSON without loss of digits. An integer that no int64 holds is kept as a text that begins with a byte which no text of JSON
/// has, so that it is told from texts; one of more than 308 digits is no JSON here, as everywhere in sluice.
namespace sluice::nodes {

/// What becomes of 1.0 and 1e30.
enum class WholeFloats { kStay, kBecomeIntegers };

/// A discarded value where json_or_discarded() gives one.
Json exact_json(std::string_view text, WholeFloats floats = WholeFloats::kStay);

/// The digits, with a minus, of such an integer; empty where a text is one.
std::string_view big_integer_in(std::string_view text);

/// Likewise of a value, which may be of any kind.
std::string_view big_integer_in(const Json& value);

/// A text, and no such integer.
bool is_text(const Json& value);

/// The value as JSON.
std::string text_of_exact(const Json& value);

}  // namespace sluice::nodes
