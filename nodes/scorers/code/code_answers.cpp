#include "nodes/scorers/code/code_answers.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <vector>

#include "nodes/scorers/exact_json.h"

namespace sluice::nodes {
namespace {

std::vector<std::string_view> words_of(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t begin = 0; (begin = line.find_first_not_of(" \t\r\v\f", begin)) != std::string_view::npos;) {
    const size_t end = std::min(line.find_first_of(" \t\r\v\f", begin), line.size());
    words.push_back(line.substr(begin, end - begin));
    begin = end;
  }
  return words;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  while (!lines.empty() && words_of(lines.back()).empty()) lines.pop_back();
  return lines;
}

std::optional<double> number_in(std::string_view word) {
  double value = 0;
  if (word.starts_with('+')) word.remove_prefix(1);
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (error != std::errc() || end != word.data() + word.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

bool are_close(double written, double expected) {
  return std::abs(written - expected) <= 1e-8 + 1e-5 * std::abs(expected);  // as numpy.allclose
}

bool same_word(std::string_view written, std::string_view expected) {
  if (written == expected) return true;
  if (expected.find_first_of(".eE") == std::string_view::npos && written.find_first_of(".eE") == std::string_view::npos)
    return false;
  const auto a = number_in(written), b = number_in(expected);
  return a && b && are_close(*a, *b);
}

bool is_integer(const Json& value) { return value.is_number_integer() || !big_integer_in(value).empty(); }

bool is_number(const Json& value) { return value.is_number() || is_integer(value); }

double as_double(const Json& value) {
  return value.is_number() ? value.get<double>() : number_in(big_integer_in(value)).value_or(0);
}

bool same_list(const Json& returned, const Json& expected) { return std::ranges::equal(returned, expected, same_json); }

bool same_members(const Json& returned, const Json& expected) {
  if (returned.size() != expected.size()) return false;
  return std::ranges::all_of(expected.items(), [&](const auto& member) {
    const auto found = returned.find(member.key());
    return found != returned.end() && same_json(*found, member.value());
  });
}

}  // namespace

bool same_output(std::string_view written, std::string_view expected) {
  const auto ours = lines_of(written), theirs = lines_of(expected);
  return std::ranges::equal(ours, theirs, [](std::string_view a, std::string_view b) {
    return std::ranges::equal(words_of(a), words_of(b), same_word);
  });
}

bool same_json(const Json& returned, const Json& expected) {
  if (is_number(returned) && is_number(expected) && !(is_integer(returned) && is_integer(expected)))
    return are_close(as_double(returned), as_double(expected));
  if (returned.type() != expected.type()) return false;
  if (returned.is_array()) return same_list(returned, expected);
  return returned.is_object() ? same_members(returned, expected) : returned == expected;
}

bool same_value(const Json& returned, const std::vector<Json>& accepted) {
  return std::ranges::any_of(accepted, [&](const Json& expected) { return same_json(returned, expected); });
}

}  // namespace sluice::nodes
