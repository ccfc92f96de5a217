#pragma once

#include <cstdint>
#include <string_view>

/// Words beside numbers that make something else of them.
namespace sluice::nodes {

/// The power of ten of "million" or "hundred thousand" after a number, which it takes from `text` with the blanks and braces
/// before it; 0 where there is no such word. At most two words.
int64_t take_scale_words(std::string_view& text);

/// Whether it has the word "or" or "and": what is beside the number is no unit then, but another answer or a part of it.
bool joins_something(std::string_view text);

}  // namespace sluice::nodes
