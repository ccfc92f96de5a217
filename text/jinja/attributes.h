#pragma once

#include <string_view>

#include "text/jinja/callable.h"
#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// object.name: an attribute or a method of that name, else object["name"], else undefined. What would change a list or a dict,
/// and names with an underscore in front, are undefined, as in the reference's sandbox. Throws Failure on undefined objects.
Value get_attribute(Sandbox& sandbox, const Value& object, std::string_view name);

/// object[index]: an element, else an attribute of that name, else undefined.
Value get_item(Sandbox& sandbox, const Value& object, const Value& index);

/// object[start:stop:step]; the parts are ints or None.
Value get_slice(Sandbox& sandbox, const Value& object, const Value& start, const Value& stop, const Value& step);

/// Only an attribute or method: missing when there is none.
Value own_attribute(Sandbox& sandbox, const Value& object, std::string_view name);

}  // namespace sluice::text::jinja
