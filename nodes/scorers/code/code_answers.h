#pragma once

#include <string_view>
#include <vector>

#include "base/json/json.h"

/// Whether what a solution wrote or returned is what a test expects. Values are those of exact_json().
namespace sluice::nodes {

/// A program wrote what it should: the same words on the same lines. Blanks at the ends of lines and empty lines at the end do
/// not matter, nor do small differences (1e-5 of the value) of numbers that are written with a point or an exponent.
bool same_output(std::string_view written, std::string_view expected);

/// The same JSON: integers exactly, whatever their size; where one of two numbers has a point or an exponent, with the same small
/// differences; members of objects in any order.
bool same_json(const Json& returned, const Json& expected);

/// A function returned one of the values that are accepted (CodeProblem).
bool same_value(const Json& returned, const std::vector<Json>& accepted);

}  // namespace sluice::nodes
