#pragma once

#include <string_view>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// cycler("odd", "even"): gives its items in turn.
struct Cycler final : Object {
  explicit Cycler(std::vector<Value> values) : items(std::move(values)) {}
  Kind kind() const { return Kind::kCycler; }
  size_t extra_bytes() const { return items.capacity() * sizeof(Value); }
  void clear() override { items.clear(); }
  std::vector<Value> items;
  size_t position = 0;
};

/// cycler.NAME; missing when there is no such attribute.
Value cycler_attribute(Sandbox& sandbox, const Value& cycler, std::string_view name);

}  // namespace sluice::text::jinja
