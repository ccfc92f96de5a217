#pragma once

#include <functional>

#include "text/jinja/iterate.h"
#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// The `loop` variable of one for loop, and what moves it: looks one element ahead only when asked, like the reference, so that a
/// lazy sequence is evaluated exactly as far as it would be there.
struct Loop final : Object {
  /// `elements`: gives the next element that the loop shall see. `known_length` -1: count them when asked.
  Loop(Sandbox& owner, std::function<bool(Value&)> next_element, int64_t known_length, int64_t nesting)
      : sandbox(owner), source(std::move(next_element)), total(known_length), depth0(nesting) {}
  Kind kind() const { return Kind::kLoop; }
  size_t extra_bytes() const { return 160; }
  void clear() override;

  /// The loop is over: a template may keep the variable, but not what it went through.
  void finish() { clear(); }
  bool advance(Value& element);
  bool peek();
  int64_t length();

  Sandbox& sandbox;
  std::function<bool(Value&)> source;
  std::vector<Value> ahead;  // read already, in order; `ahead_position` is the next one
  size_t ahead_position = 0;
  Value previous, current, last_changed;
  int64_t total;
  int64_t index0 = -1;
  int64_t depth0;
  std::function<Value(const Value& over)> recurse;  // of a recursive loop, while it runs
};

/// loop.NAME; missing when there is no such attribute.
Value loop_attribute(Sandbox& sandbox, const Value& loop, std::string_view name);

}  // namespace sluice::text::jinja
