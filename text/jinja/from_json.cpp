#include "text/jinja/from_json.h"

#include "base/text/strings.h"

namespace sluice::text::jinja {
namespace {

// Without limits, so as to know how much room it takes.
size_t bytes_of(const Json& json, int depth = 0) {
  constexpr size_t kValue = 128;
  constexpr int kDeepest = 1000;
  if (depth > kDeepest) throw Failure("the data nest deeper than " + std::to_string(kDeepest) + " levels");
  size_t bytes = kValue;
  if (json.is_string()) bytes += json.get_ref<const std::string&>().size();
  if (json.is_array()) {
    for (const Json& item : json) bytes += bytes_of(item, depth + 1);
  } else if (json.is_object()) {
    for (const auto& [key, item] : json.items()) bytes += 2 * kValue + key.size() + bytes_of(item, depth + 1);
  }
  return bytes;
}

Value string_of(Sandbox& sandbox, const std::string& text) {
  if (!is_utf8(text)) throw Failure("a text in the data is not UTF-8");
  return make_string(sandbox, text);
}

}  // namespace

Value value_of(Sandbox& sandbox, const Json& json) {
  const Nesting nesting(sandbox);
  switch (json.type()) {
    case Json::value_t::boolean:
      return Value::boolean(json.get<bool>());
    case Json::value_t::number_integer:
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_unsigned:
      if (json.get<uint64_t>() > static_cast<uint64_t>(INT64_MAX))
        throw Failure("the integer " + std::to_string(json.get<uint64_t>()) +
                      " in the data does not fit into 64 bits with a sign");
      return Value::integer(json.get<int64_t>());
    case Json::value_t::number_float:
      return Value::real(json.get<double>());
    case Json::value_t::string:
      return string_of(sandbox, json.get_ref<const std::string&>());
    case Json::value_t::array: {
      std::vector<Value> items;
      items.reserve(json.size());
      for (const Json& item : json) items.push_back(value_of(sandbox, item));
      return make_list(sandbox, std::move(items));
    }
    case Json::value_t::object: {
      Value dict = make_dict(sandbox);
      for (const auto& [key, item] : json.items()) dict.as<Dict>().set(sandbox, string_of(sandbox, key), value_of(sandbox, item));
      return dict;
    }
    default:
      return Value::none();
  }
}

Value value_of_variables(Sandbox& sandbox, const Json& variables) {
  constexpr int64_t kStepsPerByte = 8, kBytesPerByte = 6;
  const auto bytes = static_cast<int64_t>(bytes_of(variables));
  sandbox.raise_limits(bytes * kStepsPerByte, bytes * kBytesPerByte);
  return value_of(sandbox, variables);
}

}  // namespace sluice::text::jinja
