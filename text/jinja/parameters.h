#pragma once

#include <string_view>

#include "text/jinja/operators.h"
#include "text/jinja/value.h"

namespace sluice::text::jinja {

// Reading what a filter, a test or a method was given. Each throws Failure when the value is of another type.

inline int64_t integer_or(const Value& value, int64_t otherwise, std::string_view what) {
  if (value.is_missing()) return otherwise;
  must_be_defined(value);
  if (!value.is_integer()) throw Failure(std::string(what) + " needs an int, not " + with_article(value));
  return value.as_integer();
}

/// None counts as not given.
inline int64_t index_or(const Value& value, int64_t otherwise, std::string_view what) {
  return value.is_none() ? otherwise : integer_or(value, otherwise, what);
}

inline std::string_view string_of(const Value& value, std::string_view what) {
  must_be_defined(value);
  if (!value.is_string()) throw Failure(std::string(what) + " needs a str, not " + with_article(value));
  return value.text();
}

inline bool flag(const Value& value, bool otherwise = false) { return value.is_missing() ? otherwise : truthy(value); }

}  // namespace sluice::text::jinja
