#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace sluice::cli {

/// Values that a cell of a plot has beside each other: Braille has two columns of dots, ASCII one sign.
size_t values_of_cell(bool unicode);

/// The course of `values` as lines of `width` cells, the highest first: of dots (Braille), or of `*` in plain ASCII. The first
/// value is at the left edge, the last at the right one; what lies between two neighbours is joined. Equal values lie in the
/// middle. All are finite, at least one.
std::vector<std::string> dot_plot(const std::vector<double>& values, size_t width, size_t height, bool unicode);

}  // namespace sluice::cli
