#pragma once

#include <string>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// The `attribute` argument of filters: "address.city", "items.0", a number, or nothing at all (the element itself).
class AttributePath {
 public:
  AttributePath() = default;
  AttributePath(Sandbox& sandbox, const Value& attribute);

  /// `otherwise`, when there is one, takes the place of what is undefined.
  Value of(Sandbox& sandbox, const Value& element, const Value& otherwise = Value()) const;

 private:
  std::vector<Value> parts_;
};

/// What sort and its relatives compare: case does not count unless asked for.
Value comparison_key(Sandbox& sandbox, const Value& value, bool case_sensitive);

}  // namespace sluice::text::jinja
