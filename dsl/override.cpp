// parse_override: one --set argument becomes a layer.
#include <charconv>

#include "base/text/strings.h"
#include "dsl/layers.h"
#include "dsl/text_lines.h"
#include "dsl/toml_source.h"

namespace sluice::dsl {
namespace {

// The first = that is not inside of a quoted key.
size_t find_equals(std::string_view argument) {
  char quote = '\0';
  for (size_t i = 0; i < argument.size(); ++i) {
    const char c = argument[i];
    if (quote != '\0') {
      if (c == '\\' && quote == '"') ++i;
      if (c == quote) quote = '\0';
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '=') {
      return i;
    }
  }
  return std::string_view::npos;
}

// The value at the end of a.b.c=0: each table on the way has one key.
engine::Value& innermost(engine::Table& root) {
  engine::Entry* entry = &root.entries.front();
  while (auto* table = std::get_if<engine::Table>(&entry->value.data)) entry = &table->entries.front();
  return entry->value;
}

bool must_be_toml(std::string_view value) {
  return !value.empty() && std::string_view("\"'[{").find(value.front()) != std::string_view::npos;
}

// A number that TOML cannot hold is no text.
bool is_too_large(std::string_view value) {
  const auto is_out_of_range = [&](auto number) {
    const auto read = std::from_chars(value.data(), value.data() + value.size(), number);
    return read.ptr == value.data() + value.size() && read.ec == std::errc::result_out_of_range;
  };
  return is_out_of_range(int64_t{}) || is_out_of_range(double{});
}

// The argument as it stands, if it is one line of TOML. `failures` says why not.
std::optional<engine::Table> parse_as_toml(const std::shared_ptr<const SourceText>& source, Problems& failures) {
  if (source->text.find('\n') != std::string::npos) return std::nullopt;  // a second line could be another key
  return parse_toml(source->text, source, "", failures);
}

// The key as TOML, the value as the text after the =.
std::optional<engine::Table> parse_with_bare_value(const std::shared_ptr<const SourceText>& source, size_t equals,
                                                   Problems& problems) {
  const std::string key = source->text.substr(0, equals);
  auto root = parse_toml(key + "=0", source, "", problems);
  if (!root) return std::nullopt;
  const std::string_view value = trim(std::string_view(source->text).substr(equals + 1));
  const size_t begin = value.empty() ? source->text.size() : static_cast<size_t>(value.data() - source->text.data());
  engine::Value& target = innermost(*root);
  target.data = std::string(value);
  target.where = TextLines(source->text, source).span_of_bytes(begin, begin + value.size());
  return root;
}

}  // namespace

std::optional<Layer> parse_override(const std::string& argument, Problems& problems) {
  const auto source = std::make_shared<SourceText>(SourceText{.name = "--set", .text = argument, .typed = true});
  const size_t equals = find_equals(argument);
  const auto refused = [&](size_t begin, size_t end, std::string message, std::string caret) -> std::optional<Layer> {
    problems.push_back({.kind = "override-malformed",
                        .where = TextLines(source->text, source).span_of_bytes(begin, end),
                        .message = std::move(message),
                        .caret = std::move(caret),
                        .notes = {},
                        .help = "write --set KEY=VALUE, for example --set nodes.generate.max_new_tokens=64"});
    return std::nullopt;
  };
  if (equals == std::string::npos)
    return refused(0, argument.size(), "no = in " + sluice::quoted(argument), "a value is missing");
  const std::string_view key = std::string_view(argument).substr(0, equals);
  if (trim(key).empty()) return refused(equals, equals + 1, "no key before the =", "");
  if (key.find('\n') != std::string_view::npos) return refused(0, 1, "a line break in a key", "");
  const char first = trim(key).front();
  if (first == '+') return refused(0, equals, "a key does not begin with +", "without the +: --set adds a key that is not there");
  if (first == '[' || first == '#') return refused(0, equals, "not a key", "a key is like nodes.generate.max_new_tokens");

  Problems failures;
  auto root = parse_as_toml(source, failures);
  const std::string_view value = trim(std::string_view(argument).substr(equals + 1));
  if (!root && (must_be_toml(value) || is_too_large(value)) && !failures.empty()) {
    failures.front().help = is_too_large(value)
                                ? "the number is too large, or too close to 0; if it is meant as text, put it in quotes"
                                : "the value begins like TOML; if it is meant as text, put it in quotes";
    problems.insert(problems.end(), failures.begin(), failures.end());
    return std::nullopt;
  }
  if (root) problems.insert(problems.end(), failures.begin(), failures.end());
  if (!root) root = parse_with_bare_value(source, equals, problems);
  if (!root) return std::nullopt;

  check_top_level(*root, problems);
  if (const engine::Entry* entry = root->find("extends")) {
    problems.push_back({.kind = "override-malformed",
                        .where = entry->key_where,
                        .message = "extends cannot be set from the command line",
                        .caret = "",
                        .notes = {},
                        .help = "write a file that extends the other one, and name it instead"});
    return std::nullopt;
  }
  return Layer{.root = std::move(*root), .is_override = true, .removes = value.empty()};
}

}  // namespace sluice::dsl
