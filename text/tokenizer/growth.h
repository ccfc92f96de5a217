#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::text {

/// Throws UserError when a step of a tokenizer makes `size` bytes out of `before`, far more than any honest one: steps that each
/// double a text would fill the memory. `where` names the step.
void check_growth(size_t before, size_t size, const std::string& where);

}  // namespace sluice::text
