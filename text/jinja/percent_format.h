#pragma once

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// Python's `format % arguments` for a str: one value, a tuple of them, or a mapping for %(name)s.
Value percent_format(Sandbox& sandbox, const Value& format, const Value& arguments);

}  // namespace sluice::text::jinja
