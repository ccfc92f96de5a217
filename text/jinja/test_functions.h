#pragma once

#include <string>
#include <string_view>

#include "text/jinja/callable.h"

namespace sluice::text::jinja {

/// The test `name` (`x is name(...)`); null when there is none. Gives a bool, or what the operator of that name gives.
Function find_test(std::string_view name);
std::string unknown_test(std::string_view name);

bool is_callable(const Value& value);

}  // namespace sluice::text::jinja
