#include "nodes/scorers/python/python_reply.h"

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/shown_text.h"
#include "nodes/scorers/metric_name.h"

namespace sluice::nodes {
namespace {

[[noreturn]] void refuse(const std::string& line) {
  throw UserError("wrote " + shown_text(line) + " into the channel between it and sluice, which is no answer");
}

const Json& member(const Json& object, const char* key, Json::value_t type, const std::string& line) {
  const auto found = object.is_object() ? object.find(key) : object.end();
  if (!object.is_object() || found == object.end() || found->type() != type) refuse(line);
  return *found;
}

double number(const Json& value, const std::string& line) {
  if (!value.is_number() || !std::isfinite(value.get<double>())) refuse(line);
  return value.get<double>();
}

float score(const Json& value, const std::string& line) {
  const double score = number(value, line);
  if (std::abs(score) > static_cast<double>(std::numeric_limits<float>::max())) refuse(line);
  return static_cast<float>(score);
}

std::pair<size_t, std::string> sample_error(const Json& value, size_t samples, const std::string& line) {
  if (!value.is_array() || value.size() != 2 || !value[0].is_number_unsigned() || value[0].get<size_t>() >= samples ||
      !value[1].is_string())
    refuse(line);
  return {value[0].get<size_t>(), value[1].get<std::string>()};
}

bool has_failure(const Json& said) { return said.is_object() && said.contains("failure") && said["failure"].is_string(); }

// What the worker advises beside its failure; text alone counts.
std::string help_in(const Json& said) {
  const auto help = said.find("help");
  return help != said.end() && help->is_string() ? help->get<std::string>() : std::string();
}

}  // namespace

PythonReply parse_python_reply(const std::string& line, size_t samples) {
  const Json said = json_or_discarded(line);
  PythonReply reply;
  if (has_failure(said)) {
    reply.failure = said["failure"].get<std::string>();
    return reply;
  }
  const Json& scores = member(said, "scores", Json::value_t::array, line);
  if (scores.size() != samples) refuse(line);
  for (const Json& value : scores) reply.scores.push_back(score(value, line));
  for (const Json& value : member(said, "errors", Json::value_t::array, line))
    reply.errors.push_back(sample_error(value, samples, line));
  for (const auto& [name, values] : member(said, "metrics", Json::value_t::object, line).items()) {
    if (const std::string fault = fault_of_metric_name(name); !fault.empty()) reply.failure = "it logged " + fault;
    if (!values.is_array()) refuse(line);
    for (const Json& value : values) reply.metrics.emplace_back(name, number(value, line));
  }
  return reply;
}

std::string parse_python_greeting(const std::string& line) {
  const Json said = json_or_discarded(line);
  if (has_failure(said)) throw UserError(said["failure"].get<std::string>(), help_in(said));
  const Json& function = member(member(said, "ready", Json::value_t::object, line), "function", Json::value_t::string, line);
  return function.get<std::string>();
}

}  // namespace sluice::nodes
