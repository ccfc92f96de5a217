#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/json/json.h"

namespace sluice::nodes {

/// What a solution is tested with, as a label spells it in JSON:
///
///   {"tests": ["assert f(1) == 2", ...]}                        statements, run after the solution
///   {"inputs": ["3 4\n", ...], "outputs": ["7\n", ...]}         of programs: what they read, and what they must write
///   {"fn_name": "f", "inputs": [[3, 4], ...], "outputs": [7]}   of functions: arguments, and what they must return
///
/// The last two are those of APPS, TACO and verl's prime_code: inputs and outputs may be JSON in a string, the arguments one a
/// line. An output of a function that is a text may be returned as that text or as the JSON in it: both "100" and 100 pass for
/// "100". Where each output of a label is a list of one element, the element may be returned as well as the list: APPS wraps
/// values so. Values are those of exact_json().
struct CodeProblem {
  std::vector<std::string> statements;
  std::vector<std::string> inputs, outputs;  // of a program
  std::string function;
  std::vector<Json> arguments;            // of the function: a list for each test
  std::vector<std::vector<Json>> values;  // and what it may return, one of these

  bool of_program() const { return !inputs.empty(); }
  size_t tests() const { return statements.size() + inputs.size() + arguments.size(); }
};

/// The first `most` tests. Throws UserError, as readers of describe_labels() do.
CodeProblem parse_code_problem(const std::string& label, size_t most);

}  // namespace sluice::nodes
