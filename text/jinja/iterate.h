#pragma once

#include <functional>
#include <vector>

#include "text/jinja/value.h"

namespace sluice::text::jinja {

/// Whether a for loop may run over `value`. Undefined is empty.
bool is_iterable(const Value& value);

/// Walks over what Python's iter() walks over: the characters of a str, the keys of a dict, ... Holds the value alive. One step
/// an element. Throws Failure for what cannot be iterated.
class Cursor {
 public:
  Cursor() = default;
  Cursor(Sandbox& sandbox, Value over);
  bool next(Value& element);

 private:
  Sandbox* sandbox_ = nullptr;
  Value over_;
  size_t position_ = 0;  // an index, or the byte of a str
};

/// Until `visit` gives false.
void for_each(Sandbox& sandbox, const Value& over, const std::function<bool(const Value&)>& visit);

std::vector<Value> elements_of(Sandbox& sandbox, const Value& over);

/// Of what Python's reversed() takes.
bool is_reversible(const Value& value);

/// len(); -1 for what has none.
int64_t length_of(const Value& value);

/// An iterator over values that are there already.
Value make_iterator(Sandbox& sandbox, const char* python_name, std::vector<Value> items);

/// An iterator over what `evaluate` gives, which is called when the first element is wanted.
Value make_lazy(Sandbox& sandbox, std::function<std::vector<Value>()> evaluate);

}  // namespace sluice::text::jinja
