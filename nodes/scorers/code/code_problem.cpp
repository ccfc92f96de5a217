#include "nodes/scorers/code/code_problem.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/strings.h"

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
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::vector<std::string> lines;
  for (const Json& line : value) lines.push_back(text_of(line));
  return join(lines, "\n");
}

Json json_in(const std::string& text) {
  Json value = json_or_discarded(text);
  return value.is_discarded() ? Json(text) : value;
}

Json arguments_of(const Json& input) {
  if (!input.is_string()) return input.is_array() ? input : Json::array({input});
  Json all = Json::array();
  for (const std::string& line : split(input.get<std::string>(), '\n')) all.push_back(json_in(line));
  return all;
}

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; (begin = line.find_first_not_of(" \t\r\v\f", begin)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r\v\f", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && words_of(lines.back()).empty()) lines.pop_back();
  return lines;
}

std::optional<double> number_in(std::string_view word) {
  double value = 0;
  if (word.starts_with('+')) word.remove_prefix(1);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool same_word(std::string_view written, std::string_view expected) {
  if (written == expected) return true;
  if (expected.find_first_of(".eE") == std::string_view::npos && written.find_first_of(".eE") == std::string_view::npos)
    return false;
  const auto a = number_in(written), b = number_in(expected);
  return a && b && std::abs(*a - *b) <= 1e-8 + 1e-5 * std::abs(*b);  // as numpy.allclose
}

// The text between fences that begins at `begin`.
std::string_view block_at(std::string_view response, size_t begin) {
  const size_t line_end = response.find('\n', begin);
  if (line_end == std::string_view::npos) return {};
  std::string_view body = response.substr(line_end + 1);
  const size_t end = body.starts_with("```") ? 0 : body.find("\n```");
  return end == std::string_view::npos ? body : body.substr(0, end + (end > 0 ? 1 : 0));
}

}  // namespace

CodeProblem parse_code_problem(const std::string& label, size_t most) {
  const Json parsed = json_or_discarded(label);
  if (!parsed.is_object()) throw UserError("is not a JSON object", kForms);
  CodeProblem problem;
  const Json* tests = list_in(parsed, "tests");
  const Json *inputs = list_in(parsed, "inputs"), *outputs = list_in(parsed, "outputs");
  if (tests != nullptr) {
    for (const Json& test : *tests) {
      if (!test.is_string()) throw UserError("has a test that is not a text", kForms);
      problem.statements.push_back(test.get<std::string>());
    }
    problem.statements.resize(std::min(most, problem.statements.size()));
  } else if (inputs != nullptr && outputs != nullptr) {
    if (inputs->size() != outputs->size()) {
      throw UserError("has " + std::to_string(inputs->size()) + " inputs and " + std::to_string(outputs->size()) + " outputs");
    }
    const auto name = parsed.find("fn_name");
    const bool of_function = name != parsed.end() && name->is_string();
    if (of_function) problem.function = name->get<std::string>();
    for (size_t i = 0; i < std::min(most, inputs->size()); ++i) {
      const Json &input = (*inputs)[i], &output = (*outputs)[i];
      if (of_function) {
        problem.arguments.push_back(arguments_of(input));
        problem.values.push_back(output.is_string() ? json_in(output.get<std::string>()) : output);
      } else {
        problem.inputs.push_back(text_of(input));
        problem.outputs.push_back(text_of(output));
      }
    }
  }
  if (problem.tests() == 0) throw UserError("has no tests", kForms);
  return problem;
}

std::string code_of(std::string_view response) {
  constexpr std::string_view kFence = "```";
  std::optional<std::string_view> of_python, of_any;
  for (size_t at = 0; (at = response.find(kFence, at)) != std::string_view::npos;) {
    const size_t line_end = std::min(response.find('\n', at), response.size());
    const std::string_view mark = trim(response.substr(at + kFence.size(), line_end - at - kFence.size()));
    const std::string_view block = block_at(response, at);
    of_any = block;
    if (mark == "python" || mark == "py" || mark == "python3" || mark == "Python") of_python = block;
    const size_t end = block.empty() ? line_end : static_cast<size_t>(block.data() + block.size() - response.data());
    const size_t closing = response.find(kFence, end);
    at = closing == std::string_view::npos ? response.size() : closing + kFence.size();
  }
  if (of_python) return std::string(*of_python);
  return std::string(of_any ? *of_any : response);
}

bool same_output(std::string_view written, std::string_view expected) {
  const auto ours = lines_of(written), theirs = lines_of(expected);
  return std::ranges::equal(ours, theirs, [](std::string_view a, std::string_view b) {
    return std::ranges::equal(words_of(a), words_of(b), same_word);
  });
}

bool same_value(const Json& returned, const Json& expected) {
  return returned == expected || (expected.is_array() && !expected.empty() && returned == expected.front());
}

}  // namespace sluice::nodes
