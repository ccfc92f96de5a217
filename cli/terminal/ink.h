#pragma once

#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace sluice::cli {

/// What a terminal can show.
struct Abilities {
  bool cursor = false;  // it is a terminal, and its cursor moves
  bool colour = false;
  bool unicode = false;  // the locale is UTF-8
};

/// Of what `stream` writes to, and of the environment: without TERM, and with TERM=dumb, there is no cursor; NO_COLOR
/// (no-color.org) means no colour.
Abilities abilities_of(std::FILE* stream);

enum class Ink { kPlain, kBold, kDim, kGreen, kYellow, kRed, kBlue };

/// A piece of a line in one colour.
struct Piece {
  std::string text;
  Ink ink = Ink::kPlain;
};

/// `text` in that colour; as it is without `colour`.
std::string inked(const std::string& text, Ink ink, bool colour);

/// The pieces after each other in at most `width` cells: what does not fit is left away. Their text may come from a file: what
/// could steer the terminal is escaped.
std::string fitted(const std::vector<Piece>& pieces, size_t width, bool colour);

/// The course of `values` in at most `width` cells of one line, from the lowest to the highest of them: with bars of eighths, or
/// with signs of ASCII. Where there are more values than cells, each cell is the mean of some. Empty for fewer than two finite
/// values.
std::string curve(const std::vector<double>& values, size_t width, bool unicode);

}  // namespace sluice::cli
