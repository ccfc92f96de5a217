#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace sluice::text {

/// A mark is a text that a chat template writes around what a call says, such as "</parameter>\n<parameter=". Three bytes in it
/// are holes: an id of the call, its name once more, and the key of the value that is read. Models are less exact with blanks
/// than templates: blanks within a mark match any blanks or none, and blanks beside a bracket of it may be more than it has.
namespace call_marks {

inline constexpr char kId = '\x01', kName = '\x02', kKey = '\x03';

struct Holes {
  std::string_view name = {};
  std::string_view key = {};
};

struct Place {
  size_t begin = std::string_view::npos;  // nowhere
  size_t end = std::string_view::npos;
  std::string_view id = {};  // what stands in the hole of that name

  bool is_there() const { return begin != std::string_view::npos; }
};

/// The mark at `at`, without blanks before it but those that the mark has. An empty mark is everywhere.
Place mark_at(std::string_view mark, std::string_view text, size_t at, const Holes& holes = {});

/// The first place of the mark from `from` on. Blanks that the mark begins and ends with belong to it as far as they are there;
/// no others do. An empty mark is nowhere. Takes time in proportion to the text.
Place find_mark(std::string_view mark, std::string_view text, size_t from, const Holes& holes = {});

/// Where the first part of the mark, up to a closing bracket, begins with nothing after it but more of the mark, cut by the end
/// of the text.
Place find_cut_mark(std::string_view mark, std::string_view text, size_t from, const Holes& holes = {});

bool is_blank(char c);

/// Letters of any kind in it: a mark that a text does not hold by chance.
bool is_distinct(std::string_view mark);

/// Without the last part, if a bracket "<" or "[" opens there that is not closed.
std::string_view without_open_bracket(std::string_view text);

/// As it is told to a model: without holes, on one line.
std::string shown(std::string_view mark);

}  // namespace call_marks
}  // namespace sluice::text
