#include "dsl/yaml.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string>
#include <vector>

#include "base/text/strings.h"

namespace sluice::dsl {
namespace {

constexpr size_t kShownLines = 5;
constexpr size_t kLongestValue = 60;

/// A line `key: value` or `key:`.
struct Line {
  size_t indent = 0;
  size_t begin = 0;  // where the key begins in the text
  std::string key;
  std::string value;  // empty: what is indented below belongs to the key
};

bool is_key_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.'; }

std::string_view without_comment(std::string_view line) {
  bool quoted = false;
  for (size_t i = 0; i < line.size(); ++i) {
    if (line[i] == '#' && !quoted && (i == 0 || line[i - 1] == ' ')) return line.substr(0, i);
    quoted ^= line[i] == '"';
  }
  return line;
}

// Nothing for a line that is no `key: value`.
std::optional<Line> parsed(std::string_view line, size_t begin) {
  line = without_comment(line);
  const size_t indent = std::min(line.find_first_not_of(' '), line.size());
  size_t end = indent;
  while (end < line.size() && is_key_character(line[end])) ++end;
  const bool is_pair = end > indent && end < line.size() && line[end] == ':' && (end + 1 == line.size() || line[end + 1] == ' ');
  if (!is_pair) return std::nullopt;
  return Line{indent, begin + indent, std::string(line.substr(indent, end - indent)), std::string(trim(line.substr(end + 1)))};
}

bool is_blank(std::string_view line) { return trim(without_comment(line)).empty(); }

// The lines from the first that says something up to one that is no `key: value`, such as an element of a list.
std::vector<Line> first_lines(std::string_view text) {
  std::vector<Line> found;
  for (size_t begin = 0; begin < text.size() && found.size() < kShownLines + 1;) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    const bool starts_document = found.empty() && (line == "---" || line.starts_with("%YAML"));
    if (!starts_document && !is_blank(line)) {
      auto pair = parsed(line, begin);
      if (!pair) break;
      found.push_back(std::move(*pair));
    }
    begin = end + 1;
  }
  return found;
}

bool is_plain_in_toml(const std::string& value) {
  if (value == "true" || value == "false" || value.front() == '"' || value.front() == '\'') return true;
  size_t digits = 0;
  for (const char c : value) {
    digits += std::isdigit(static_cast<unsigned char>(c)) != 0;
    if (std::string_view("0123456789+-.eE_").find(c) == std::string_view::npos) return false;
  }
  return digits > 0 && std::isdigit(static_cast<unsigned char>(value.back())) != 0;
}

std::string in_toml(const std::string& value) {
  if (value.size() > kLongestValue) return "\"...\"";
  if (value.front() == '[' && value.back() == ']') {
    std::vector<std::string> elements;
    for (const std::string& element : split(std::string_view(value).substr(1, value.size() - 2), ',')) {
      const std::string plain(trim(element));
      if (!plain.empty()) elements.push_back(in_toml(plain));
    }
    return "[" + join(elements, ", ") + "]";
  }
  if (value.front() == '|' || value.front() == '>' || value.front() == '{' || value.front() == '&') return "...";
  return is_plain_in_toml(value) ? value : sluice::quoted(value);
}

// `[a.b]` where keys stand indented below a and b, then `key = value`.
std::vector<std::string> translated(const std::vector<Line>& lines) {
  std::vector<std::string> text;
  std::vector<Line> above;
  std::string table;
  for (size_t i = 0; i < std::min(lines.size(), kShownLines); ++i) {
    const Line& line = lines[i];
    while (!above.empty() && above.back().indent >= line.indent) above.pop_back();
    if (line.value.empty()) {
      above.push_back(line);
      continue;
    }
    std::vector<std::string> keys;
    for (const Line& key : above) keys.push_back(key.key);
    const std::string heading = join(keys, ".");
    if (heading != table && !heading.empty()) text.push_back("[" + heading + "]");
    table = heading;
    text.push_back(line.key + " = " + in_toml(line.value));
  }
  if (text.empty() && !above.empty()) {
    std::vector<std::string> keys;
    for (const Line& key : above) keys.push_back(key.key);
    text.push_back("[" + join(keys, ".") + "]");
  }
  return text;
}

// Where the first element of a list stands, of a text that begins with one.
std::optional<size_t> list_at_begin(std::string_view text) {
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line = text.substr(begin, end - begin);
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.starts_with("- ")) return trim(line.substr(2)).starts_with('=') ? std::nullopt : std::optional(begin);
    if (line != "---" && !line.starts_with("%YAML") && !is_blank(line)) return std::nullopt;
    begin = end + 1;
  }
  return std::nullopt;
}

bool has_tables_of_pipelines(const std::vector<Line>& lines) {
  constexpr std::array<std::string_view, 10> kTables{"pipeline", "budget",  "schedule", "runtime", "checkpoint",
                                                     "log",      "cluster", "devices",  "models",  "nodes"};
  return std::ranges::any_of(lines, [&](const Line& line) {
    return line.indent == 0 && line.value.empty() && std::ranges::find(kTables, line.key) != kTables.end();
  });
}

// A configuration of another system is no pipeline in TOML either.
std::string help_text(const std::vector<Line>& first) {
  if (has_tables_of_pipelines(first))
    return "write it in TOML, where it begins with\n          " + join(translated(first), "\n          ");
  return "begin with a copy of one of pipelines/, which have the tables [pipeline], [budget], [models.NAME] and [nodes.NAME]; "
         "a key of another system is answered with the one that it has here";
}

}  // namespace

std::optional<Problem> yaml_problem(std::string_view text, const TextLines& lines) {
  const std::vector<Line> first = first_lines(text);
  const std::optional<size_t> list = first.empty() ? list_at_begin(text) : std::nullopt;
  if (first.empty() && !list) return std::nullopt;
  const size_t begin = list ? *list : first.front().begin;
  const size_t end = begin + (list ? 1 : first.front().key.size() + 1);
  return Problem{
      .kind = "toml-syntax",
      .where = lines.span_of_bytes(begin, end),
      .message = "this is YAML, but a pipeline is written in TOML",
      .caret = list ? "a list of YAML" : "a key of YAML",
      .notes = {"in TOML [table] begins a table, key = value stands in it, and text has quotes; pipelines/ has examples"},
      .help = help_text(first)};
}

}  // namespace sluice::dsl
