#include "nodes/scorers/code/code_problem.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/scorers/exact_json.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr const char* kForms =
    R"(a label is {"tests": ["assert f(1) == 2"]} or {"inputs": ["3 4\n"], "outputs": ["7\n"]}, with fn_name for functions)";

const Json* list_in(const Json& label, const char* key) {
  const auto found = label.find(key);
  return found != label.end() && found->is_array() ? &*found : nullptr;
}

// Text of a program's input or output; a list is one of lines.
std::string text_of(const Json& value) {
  if (!value.is_array()) return is_text(value) ? value.get<std::string>() : text_of_exact(value);
  std::vector<std::string> lines;
  for (const Json& line : value) lines.push_back(text_of(line));
  return join(lines, "\n");
}

Json json_in(const std::string& text) {
  Json value = exact_json(text);
  return value.is_discarded() ? Json(text) : value;
}

Json arguments_of(const Json& input) {
  if (!is_text(input)) return input.is_array() ? input : Json::array({input});
  Json all = Json::array();
  for (const std::string& line : split(input.get<std::string>(), '\n')) all.push_back(json_in(line));
  return all;
}

bool is_list_of_one(const Json& output) { return output.is_array() && output.size() == 1; }

// What a call may return for an output. Some data sets write values as JSON in texts, and some wrap each in a list.
std::vector<Json> accepted_values(const Json& output, bool wrapped) {
  if (wrapped) return {output, output.front()};
  if (!is_text(output)) return {output};
  return {output, json_in(output.get<std::string>())};
}

bool is_name(const std::string& text) {
  const auto begins = [](char c) { return is_letter(c) || c == '_' || static_cast<unsigned char>(c) >= 0x80; };
  return !text.empty() && begins(text.front()) && std::ranges::all_of(text, [&](char c) { return begins(c) || is_digit(c); });
}

void read_statements(const Json& tests, size_t most, CodeProblem& problem) {
  for (const Json& test : tests) {
    if (!is_text(test)) throw UserError("has a test that is not a text", kForms);
    problem.statements.push_back(test.get<std::string>());
  }
  problem.statements.resize(std::min(most, problem.statements.size()));
}

void read_calls(const std::string& function, const Json& inputs, const Json& outputs, size_t most, CodeProblem& problem) {
  if (!is_name(function)) {
    throw UserError("has the fn_name " + sluice::quoted(function) + ", which no function can have",
                    "fn_name is the name of a function, or of a method of the class Solution");
  }
  problem.function = function;
  const bool wrapped = std::ranges::all_of(outputs, is_list_of_one);
  for (size_t i = 0; i < std::min(most, inputs.size()); ++i) {
    problem.arguments.push_back(arguments_of(inputs[i]));
    problem.values.push_back(accepted_values(outputs[i], wrapped));
  }
}

void read_programs(const Json& inputs, const Json& outputs, size_t most, CodeProblem& problem) {
  for (size_t i = 0; i < std::min(most, inputs.size()); ++i) {
    problem.inputs.push_back(text_of(inputs[i]));
    problem.outputs.push_back(text_of(outputs[i]));
  }
}

}  // namespace

CodeProblem parse_code_problem(const std::string& label, size_t most) {
  const Json parsed = exact_json(label);
  if (!parsed.is_object()) throw UserError("is not a JSON object", kForms);
  CodeProblem problem;
  const Json* tests = list_in(parsed, "tests");
  const Json *inputs = list_in(parsed, "inputs"), *outputs = list_in(parsed, "outputs");
  if (tests != nullptr) {
    read_statements(*tests, most, problem);
  } else if (inputs != nullptr && outputs != nullptr) {
    if (inputs->size() != outputs->size()) {
      throw UserError("has " + std::to_string(inputs->size()) + " inputs and " + std::to_string(outputs->size()) + " outputs");
    }
    const auto name = parsed.find("fn_name");
    const bool of_function = name != parsed.end() && is_text(*name);
    if (of_function) read_calls(name->get<std::string>(), *inputs, *outputs, most, problem);
    if (!of_function) read_programs(*inputs, *outputs, most, problem);
  }
  if (problem.tests() == 0) throw UserError("has no tests", kForms);
  return problem;
}

}  // namespace sluice::nodes
