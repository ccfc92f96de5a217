#pragma once

#include <cstddef>
#include <string_view>

namespace sluice::nodes {

/// What stands before a number.
struct Sign {
  bool negative = false;
  bool part_of_name = false;  // GPT-4
  size_t begin = 0;           // of the number with its sign and currency sign
};

/// Of a number that begins at `at` of a text that plain_math() wrote, with a currency sign before or after it. A minus directly
/// before the number is its sign unless what is directly before the minus could be subtracted from (10-15). One with a blank
/// after it is a sign where nothing that precedes it could be: at the beginning of the text, behind `=`, `(`, `:` and the like, a
/// dollar sign that opens, a relation of LaTeX, and words such as `is`. Elsewhere it subtracts (16 - 3, x - 3), is a dash, or
/// begins an item of a list.
Sign sign_before(std::string_view text, size_t at);

}  // namespace sluice::nodes
