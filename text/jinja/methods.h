#pragma once

#include "text/jinja/filters.h"

namespace sluice::text::jinja {

// The methods of Python's str, dict and list (tuple), each list ends with an empty name. A null function: the method exists, but
// is not supported here.
const NamedFunction* string_methods();
const NamedFunction* string_case_methods();
const NamedFunction* dict_methods();
const NamedFunction* list_methods();

/// Whether `name` is a method of Python's list or dict that changes it. The sandbox refuses those.
bool changes_list(std::string_view name);
bool changes_dict(std::string_view name);

/// "{} {name}".format(...): `self` is the format.
Value format_method(Interpreter& interpreter, const Value& self, Arguments& arguments);

}  // namespace sluice::text::jinja
