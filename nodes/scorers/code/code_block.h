#pragma once

#include <string>
#include <string_view>

namespace sluice::nodes {

/// The last block of a response between fences, of those marked as Python if there are any; it may lack its end. Without fences:
/// all of it. A fence is three or more ` or ~ at the beginning of a line, after blanks or not; ` may open a block anywhere. A
/// fence of at least as many of the same closes it, no more than three blanks further in; the blanks before the opening fence, as
/// in a list, are taken off each line.
std::string code_of(std::string_view response);

}  // namespace sluice::nodes
