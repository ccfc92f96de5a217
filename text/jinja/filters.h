#pragma once

#include <string>
#include <string_view>

#include "text/jinja/callable.h"

namespace sluice::text::jinja {

/// The filter `name`; null when there is none. A filter is a function whose self is what stands before the `|`.
Function find_filter(std::string_view name);

/// What to say of a filter that find_filter does not know.
std::string unknown_filter(std::string_view name);

struct NamedFunction {
  std::string_view name;
  Function function;
};

// The filters by subject, each list ends with an empty name.
const NamedFunction* text_filters();
const NamedFunction* number_filters();
const NamedFunction* sequence_filters();
const NamedFunction* selection_filters();

}  // namespace sluice::text::jinja
