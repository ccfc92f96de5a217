// What a schema says of texts: `pattern` and `format`.
#include <charconv>
#include <chrono>

#include "nodes/scorers/json/json_schema_document.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

bool two_digits(std::string_view text, size_t at, int most) {
  if (text.size() < at + 2 || !is_digit(text[at]) || !is_digit(text[at + 1])) return false;
  return (text[at] - '0') * 10 + (text[at + 1] - '0') <= most;
}

bool is_date(std::string_view text) {
  constexpr size_t kLength = 10;  // 2024-02-29
  if (text.size() != kLength || text[4] != '-' || text[7] != '-') return false;
  int year = 0;
  const auto end = std::from_chars(text.data(), text.data() + 4, year).ptr;
  if (end != text.data() + 4 || year < 0 || !two_digits(text, 5, 12) || !two_digits(text, 8, 31)) return false;
  const auto month = static_cast<unsigned>((text[5] - '0') * 10 + (text[6] - '0'));
  const auto day = static_cast<unsigned>((text[8] - '0') * 10 + (text[9] - '0'));
  return std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month), std::chrono::day(day)).ok();
}

// 16:52:45Z, 16:52:45.5+02:00
bool is_time(std::string_view text) {
  constexpr size_t kSeconds = 8;  // 16:52:45
  const bool clock = text.size() > kSeconds && text[2] == ':' && text[5] == ':' && two_digits(text, 0, 23) &&
                     two_digits(text, 3, 59) && two_digits(text, 6, 60);
  if (!clock) return false;
  text.remove_prefix(kSeconds);
  if (text.starts_with('.') && take_decimals(text).empty()) return false;
  if (text == "Z" || text == "z") return true;
  const bool offset = text.size() == 6 && (text[0] == '+' || text[0] == '-') && text[3] == ':';
  return offset && two_digits(text, 1, 23) && two_digits(text, 4, 59);
}

bool is_date_time(std::string_view text) {
  const size_t middle = text.find_first_of("Tt");
  return middle != std::string_view::npos && is_date(text.substr(0, middle)) && is_time(text.substr(middle + 1));
}

// As Oniguruma writes it: ^ and $ are the ends of the text, not of a line, and a class has no classes inside.
std::string translated(std::string_view pattern) {
  std::string out;
  bool in_class = false;
  for (size_t i = 0; i < pattern.size(); ++i) {
    const char c = pattern[i];
    if (c == '\\' && i + 1 < pattern.size()) {
      out += {c, pattern[++i]};
    } else if (in_class && (c == '[' || c == '&')) {
      out += {'\\', c};
    } else if (c == '[') {
      in_class = true;
      out += c;
      if (i + 1 < pattern.size() && pattern[i + 1] == '^') out += pattern[++i];
    } else if (c == ']') {
      in_class = false;
      out += c;
    } else if (!in_class && (c == '^' || c == '$')) {
      out += c == '^' ? "\\A" : "\\z";
    } else {
      out += c;
    }
  }
  return out;
}

}  // namespace

text::Regex schema_pattern(std::string_view pattern) {
  const std::string where = "pattern", regex = translated(pattern);
  text::Regex(regex, where);              // one that is only valid in the group below is not valid
  return {"(?WD:" + regex + ")", where};  // \w and \d are of ASCII
}

bool is_known_format(std::string_view format) { return format == "date" || format == "time" || format == "date-time"; }

bool has_format(std::string_view text, std::string_view format) {
  if (format == "date") return is_date(text);
  return format == "time" ? is_time(text) : is_date_time(text);
}

}  // namespace sluice::nodes
