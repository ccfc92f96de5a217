#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

// Python's operators on values. Each throws Failure where Python raises, and where an integer leaves 64 bits (Python's grow).

bool truthy(const Value& value);
bool equal(Sandbox& sandbox, const Value& a, const Value& b);
/// a < b; `symbol` is what the template says, for the message.
bool less(Sandbox& sandbox, const Value& a, const Value& b, const char* symbol = "<");
bool compare(Sandbox& sandbox, std::string_view symbol, const Value& a, const Value& b);  // == != < <= > >=
uint64_t hash_of(Sandbox& sandbox, const Value& key);
/// element in container
bool contains(Sandbox& sandbox, const Value& container, const Value& element);

Value add(Sandbox& sandbox, const Value& a, const Value& b);
Value subtract(const Value& a, const Value& b);
Value multiply(Sandbox& sandbox, const Value& a, const Value& b);
Value divide(const Value& a, const Value& b);
Value floor_divide(const Value& a, const Value& b);
Value modulo(Sandbox& sandbox, const Value& a, const Value& b);  // also formats: "%s" % value
Value power(Sandbox& sandbox, const Value& a, const Value& b);
Value negate(const Value& value);
Value plus(const Value& value);

/// Throws Failure when `value` is undefined: what it says itself.
void must_be_defined(const Value& value);

}  // namespace sluice::text::jinja
