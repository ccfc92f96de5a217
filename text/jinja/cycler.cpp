#include "text/jinja/cycler.h"

#include "text/jinja/callable.h"

namespace sluice::text::jinja {
namespace {

Value next_item(Interpreter&, const Value& self, Arguments& arguments) {
  arguments.allow_none("next");
  auto& cycler = self.as<Cycler>();
  Value item = cycler.items[cycler.position];
  cycler.position = (cycler.position + 1) % cycler.items.size();
  return item;
}

Value reset(Interpreter&, const Value& self, Arguments& arguments) {
  arguments.allow_none("reset");
  self.as<Cycler>().position = 0;
  return Value::none();
}

}  // namespace

Value cycler_attribute(Sandbox& sandbox, const Value& cycler, std::string_view name) {
  const auto& state = cycler.as<Cycler>();
  if (name == "current") return state.items[state.position];
  if (name == "pos") return Value::integer(static_cast<int64_t>(state.position));
  if (name == "items") return make_tuple(sandbox, state.items);
  if (name == "next") return make_method(sandbox, "next", cycler, next_item);
  if (name == "reset") return make_method(sandbox, "reset", cycler, reset);
  return Value();
}

}  // namespace sluice::text::jinja
