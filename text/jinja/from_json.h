#pragma once

#include "base/json/json.h"
#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// What Python's json.loads would give. Throws Failure for text that is not UTF-8, integers beyond 64 bits and too deep nesting.
Value value_of(Sandbox& sandbox, const Json& json);

/// value_of() an object, and room in the limits for what it holds: so much data may be worked on.
Value value_of_variables(Sandbox& sandbox, const Json& variables);

}  // namespace sluice::text::jinja
