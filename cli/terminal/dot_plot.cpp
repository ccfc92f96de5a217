#include "cli/terminal/dot_plot.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>

namespace sluice::cli {
namespace {

/// Dots that are set or not; row 0 is the highest.
class Dots {
 public:
  Dots(size_t columns, size_t rows) : columns_(columns), set_(columns * rows) {}

  void set(size_t column, size_t row) { set_[row * columns_ + column] = true; }
  bool is_set(size_t column, size_t row) const { return set_[row * columns_ + column]; }

 private:
  size_t columns_;
  std::vector<bool> set_;
};

constexpr size_t kBrailleRows = 4;

// U+2800 and one bit for each dot, by row and column of the cell, in UTF-8.
std::string braille(const Dots& dots, size_t left, size_t top) {
  constexpr std::array<std::array<uint32_t, 2>, kBrailleRows> kBits{{{0x01, 0x08}, {0x02, 0x10}, {0x04, 0x20}, {0x40, 0x80}}};
  uint32_t bits = 0;
  for (size_t row = 0; row < kBrailleRows; ++row) {
    for (size_t column = 0; column < 2; ++column) {
      if (dots.is_set(left + column, top + row)) bits |= kBits[row][column];
    }
  }
  return {'\xE2', static_cast<char>(0xA0 | bits >> 6), static_cast<char>(0x80 | (bits & 0x3F))};
}

}  // namespace

size_t values_of_cell(bool unicode) { return unicode ? 2 : 1; }

std::vector<std::string> dot_plot(const std::vector<double>& values, size_t width, size_t height, bool unicode) {
  const size_t across = values_of_cell(unicode), down = unicode ? kBrailleRows : 1;
  const size_t columns = width * across, rows = height * down;
  const auto [low, high] = std::ranges::minmax(values);
  const auto row_of = [&, low = low, high = high](double value) {
    const double share = high > low ? (high - value) / (high - low) : 0.5;
    return static_cast<size_t>(std::lround(share * static_cast<double>(rows - 1)));
  };
  Dots dots(columns, rows);
  size_t before = row_of(values.front());
  for (size_t column = 0; column < columns; ++column) {
    const size_t place = columns == 1 ? 0 : column * (values.size() - 1) / (columns - 1);
    const size_t row = row_of(values[place]);
    const size_t joined = before + (row > before ? 1 : 0) - (row < before ? 1 : 0);
    const auto [from, to] = std::minmax({row, joined});
    for (size_t between = from; between <= to; ++between) dots.set(column, between);
    before = row;
  }
  std::vector<std::string> lines(height);
  for (size_t line = 0; line < height; ++line) {
    for (size_t cell = 0; cell < width; ++cell)
      lines[line] += unicode ? braille(dots, cell * across, line * down) : dots.is_set(cell, line) ? "*" : " ";
  }
  return lines;
}

}  // namespace sluice::cli
