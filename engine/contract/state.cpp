#include "engine/contract/state.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"
#include "engine/contract/columns/contract_breach.h"
#include "engine/contract/state_json.h"

namespace sluice::engine {
namespace {

// JSON has no such numbers.
Json json_of(double value) {
  if (std::isfinite(value)) return value;
  if (std::isnan(value)) return "nan";
  return value > 0 ? "inf" : "-inf";
}

double double_of(const Json& json) {
  if (json.is_number()) return json.get<double>();
  const auto text = json.get<std::string>();
  if (text == "inf") return std::numeric_limits<double>::infinity();
  if (text == "-inf") return -std::numeric_limits<double>::infinity();
  return std::numeric_limits<double>::quiet_NaN();
}

// Of a text that is not UTF-8.
std::vector<uint8_t> bytes_of(const std::string& text) { return {text.begin(), text.end()}; }

std::string text_of(const Json& bytes) {
  const auto numbers = bytes.get<std::vector<uint8_t>>();
  return {numbers.begin(), numbers.end()};
}

// Reals are in an object, so that they are told from integers and texts also where they are whole, not finite, or none.
struct ToJson {
  Json operator()(int64_t value) const { return value; }
  Json operator()(double value) const { return {{"real", json_of(value)}}; }
  Json operator()(const std::string& value) const { return is_utf8(value) ? Json(value) : Json{{"bytes", bytes_of(value)}}; }
  Json operator()(const std::vector<int64_t>& values) const { return values; }
  Json operator()(const std::vector<double>& values) const {
    Json array = Json::array();
    for (const double value : values) array.push_back(json_of(value));
    return {{"reals", std::move(array)}};
  }
};

NodeState::Value value_of(const Json& json) {
  if (json.is_number_integer()) return json.get<int64_t>();
  if (json.is_string()) return json.get<std::string>();
  if (json.is_array()) return json.get<std::vector<int64_t>>();
  if (json.contains("real")) return double_of(json.at("real"));
  if (json.contains("bytes")) return text_of(json.at("bytes"));
  std::vector<double> values;
  for (const Json& value : json.at("reals")) values.push_back(double_of(value));
  return values;
}

// As a manifest has it: each number of a list on a line of its own, after up to six blanks.
constexpr int64_t kNumberBytes = 32, kByteBytes = 12, kEscapedBytes = 6, kValueBytes = 64;

int64_t json_bytes(const std::string& text) {
  const auto bytes = static_cast<int64_t>(text.size());
  if (!is_utf8(text)) return bytes * kByteBytes;
  const auto is_escaped = [](unsigned char c) { return c < 0x20 || c == 0x7F || c == '"' || c == '\\'; };
  return bytes + std::ranges::count_if(text, is_escaped) * (kEscapedBytes - 1);
}

// With the name, the braces around a real and the line breaks.
int64_t json_bytes(const std::string& name, const NodeState::Value& value) {
  struct OfValue {
    int64_t operator()(int64_t) const { return kNumberBytes; }
    int64_t operator()(double) const { return kNumberBytes; }
    int64_t operator()(const std::string& text) const { return json_bytes(text); }
    int64_t operator()(const std::vector<int64_t>& values) const { return std::ssize(values) * kNumberBytes; }
    int64_t operator()(const std::vector<double>& values) const { return std::ssize(values) * kNumberBytes; }
  };
  return kValueBytes + json_bytes(name) + std::visit(OfValue(), value);
}

}  // namespace

int64_t state_bytes(const NodeState& state) {
  int64_t bytes = 0;
  for (const auto& [name, value] : state.values) bytes += json_bytes(name, value);
  for (const auto& [name, length] : state.files) bytes += json_bytes(name, length);
  return bytes;
}

Json json_of(const NodeState& state) {
  Json json = Json::object();
  for (const auto& [name, value] : state.values) json["values"][name] = std::visit(ToJson(), value);
  for (const auto& [name, bytes] : state.files) json["files"][name] = bytes;
  return json;
}

NodeState state_of(const Json& json) {
  try {
    NodeState state;
    const Json values = json.value("values", Json::object()), files = json.value("files", Json::object());
    for (const auto& [name, value] : values.items()) state.values[name] = value_of(value);
    for (const auto& [name, bytes] : files.items()) state.files[name] = bytes.get<int64_t>();
    return state;
  } catch (const Json::exception& error) {
    throw UserError("the state of a node is not what a run writes: " + reason_of_json_error(error.what()));
  }
}

std::string state_json(const NodeState& state) { return json_of(state).dump(); }

void StateWriter::add(const std::string& name, NodeState::Value value) {
  constexpr size_t kMostValues = 4096;  // of an object, as parse_json takes it
  if (!is_utf8(name)) throw_contract_breach("the state has a name that is not UTF-8: " + sluice::quoted(name));
  bytes_ += json_bytes(name, value);
  if (bytes_ > kMostStateBytes) {
    throw_contract_breach("the state has " + human_bytes(bytes_) + " with " + sluice::quoted(name) + "; of a node there may be " +
                          human_bytes(kMostStateBytes) + ", or the checkpoint could not be read again");
  }
  if (!state_.values.emplace(name, std::move(value)).second)
    throw_contract_breach("the state has " + sluice::quoted(name) + " twice");
  if (state_.values.size() > kMostValues)
    throw_contract_breach("the state has more than " + std::to_string(kMostValues) + " values, which arrays would hold");
}

template <class T>
const T& StateReader::value(const std::string& name, const char* kind) const {
  const auto found = state_.values.find(name);
  const T* const value = found == state_.values.end() ? nullptr : std::get_if<T>(&found->second);
  if (value != nullptr) return *value;
  throw UserError(
      "the checkpoint has no " + std::string(kind) + " " + sluice::quoted(name) + " of the node, from which it would go on",
      "it was saved by another version of the program or of the plugin");
}

int64_t StateReader::integer(const std::string& name) const { return value<int64_t>(name, "integer"); }
double StateReader::number(const std::string& name) const { return value<double>(name, "number"); }
const std::string& StateReader::text(const std::string& name) const { return value<std::string>(name, "text"); }
const std::vector<int64_t>& StateReader::integers(const std::string& name) const {
  return value<std::vector<int64_t>>(name, "integers");
}
const std::vector<double>& StateReader::numbers(const std::string& name) const {
  return value<std::vector<double>>(name, "numbers");
}

}  // namespace sluice::engine
