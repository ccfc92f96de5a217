#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// Digits of a float without sign: `type` one of e E f F g G %, as Python writes them ("inf" and "nan" included).
std::string real_digits(double magnitude, char type, int precision, bool alternate);

/// Digits of an integer without sign or prefix: `type` one of d b o x X.
std::string integer_digits(uint64_t magnitude, char type);

uint64_t magnitude_of(int64_t value);

/// The text of `value` under Python's format specification ("{:>8.2f}"). Throws Failure where Python raises.
std::string format_value(Sandbox& sandbox, const Value& value, std::string_view specification);

}  // namespace sluice::text::jinja
