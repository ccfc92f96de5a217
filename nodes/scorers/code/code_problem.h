#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"

namespace sluice::nodes {

/// What a solution is tested with, as a label spells it in JSON:
///
///   {"tests": ["assert f(1) == 2", ...]}                        statements, run after the solution
///   {"inputs": ["3 4\n", ...], "outputs": ["7\n", ...]}         of programs: what they read, and what they must write
///   {"fn_name": "f", "inputs": [[3, 4], ...], "outputs": [7]}   of functions: arguments, and what they must return
///
/// The last two are those of APPS, TACO and verl's prime_code: inputs and outputs may be JSON in a string, the arguments one a
/// line.
struct CodeProblem {
  std::vector<std::string> statements;
  std::vector<std::string> inputs, outputs;  // of a program
  std::string function;
  std::vector<Json> arguments, values;  // of the function: a list, and a value, for each test

  bool of_program() const { return !inputs.empty(); }
  size_t tests() const { return statements.size() + inputs.size() + arguments.size(); }
};

/// The first `most` tests. Throws UserError, as readers of describe_labels() do.
CodeProblem parse_code_problem(const std::string& label, size_t most);

/// The last block in ``` fences of a response, of those marked as Python if there are any; it may lack its end. Without fences:
/// all of it.
std::string code_of(std::string_view response);

/// A program wrote what it should: the same words on the same lines. Blanks at the ends of lines and empty lines at the end do
/// not matter, nor do small differences (1e-5 of the value) of numbers that are written with a point or an exponent.
bool same_output(std::string_view written, std::string_view expected);

/// A function returned what it should: the same JSON, or what is the only or first entry of an expected list, as in verl.
bool same_value(const Json& returned, const Json& expected);

}  // namespace sluice::nodes
