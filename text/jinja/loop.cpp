#include "text/jinja/loop.h"

#include "text/jinja/callable.h"
#include "text/jinja/operators.h"

namespace sluice::text::jinja {

void Loop::clear() {
  source = nullptr;
  recurse = nullptr;
  ahead.clear();
  previous = current = last_changed = Value();
}

bool Loop::peek() {
  if (ahead_position < ahead.size()) return true;
  Value element;
  if (!source || !source(element)) return false;
  ahead.clear();
  ahead.push_back(std::move(element));
  ahead_position = 0;
  return true;
}

bool Loop::advance(Value& element) {
  if (!peek()) return false;
  element = ahead[ahead_position++];
  ++index0;
  previous = std::move(current);
  current = element;
  return true;
}

int64_t Loop::length() {
  if (total >= 0) return total;
  std::vector<Value> rest(ahead.begin() + static_cast<std::ptrdiff_t>(ahead_position), ahead.end());
  Value element;
  while (source && source(element)) rest.push_back(std::move(element));
  ahead = std::move(rest);
  ahead_position = 0;
  return total = index0 + 1 + static_cast<int64_t>(ahead.size());
}

namespace {

Value cycle(Interpreter&, const Value& self, Arguments& arguments) {
  if (arguments.positional.empty()) throw Failure("loop.cycle needs the values to cycle through");
  arguments.allow_names({});
  const auto count = static_cast<int64_t>(arguments.positional.size());
  return arguments.positional[static_cast<size_t>(((self.as<Loop>().index0 % count) + count) % count)];
}

Value changed(Interpreter&, const Value& self, Arguments& arguments) {
  arguments.allow_names({});
  auto& loop = self.as<Loop>();
  Value values = make_tuple(loop.sandbox, arguments.positional);
  if (!loop.last_changed.is_missing() && equal(loop.sandbox, loop.last_changed, values)) return Value::boolean(false);
  loop.last_changed = std::move(values);
  return Value::boolean(true);
}

}  // namespace

Value loop_attribute(Sandbox& sandbox, const Value& value, std::string_view name) {
  auto& loop = value.as<Loop>();
  if (name == "index") return Value::integer(loop.index0 + 1);
  if (name == "index0") return Value::integer(loop.index0);
  if (name == "first") return Value::boolean(loop.index0 == 0);
  if (name == "last") return Value::boolean(!loop.peek());
  if (name == "length") return Value::integer(loop.length());
  if (name == "revindex") return Value::integer(loop.length() - loop.index0);
  if (name == "revindex0") return Value::integer(loop.length() - loop.index0 - 1);
  if (name == "depth") return Value::integer(loop.depth0 + 1);
  if (name == "depth0") return Value::integer(loop.depth0);
  if (name == "previtem") return loop.index0 == 0 ? make_undefined(sandbox, "there is no previous item") : loop.previous;
  if (name == "nextitem") return loop.peek() ? loop.ahead[loop.ahead_position] : make_undefined(sandbox, "there is no next item");
  if (name == "cycle") return make_method(sandbox, "cycle", value, cycle);
  if (name == "changed") return make_method(sandbox, "changed", value, changed);
  return Value();
}

}  // namespace sluice::text::jinja
