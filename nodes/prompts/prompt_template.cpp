#include "nodes/prompts/prompt_template.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {

PromptTemplate::PromptTemplate(std::string_view text, std::string_view key, std::string_view names) {
  const auto fail = [&](const std::string& what) {
    throw UserError(std::string(key) + " " + what, "{name} is " + std::string(names) + "; {{ and }} are braces");
  };
  pieces_.emplace_back();
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_brace = text[i] == '{' || text[i] == '}';
    const bool is_doubled = is_brace && i + 1 < text.size() && text[i + 1] == text[i];
    if (!is_brace || is_doubled) {
      pieces_.back().text += text[i];
      i += is_doubled;
      continue;
    }
    const size_t end = text.find('}', i);
    if (text[i] == '}') fail("has a } without its {");
    if (end == std::string_view::npos) fail("has a { without its }");
    const std::string name(trim(text.substr(i + 1, end - i - 1)));
    if (name.empty() || name.find('{') != std::string::npos)
      fail("has a place without a name: " + quoted(text.substr(i, end - i + 1)));
    pieces_.back().field = index_of(name);
    pieces_.emplace_back();
    i = end;
  }
}

size_t PromptTemplate::index_of(const std::string& field) {
  const auto found = std::ranges::find(fields_, field);
  if (found != fields_.end()) return static_cast<size_t>(found - fields_.begin());
  fields_.push_back(field);
  return fields_.size() - 1;
}

std::string PromptTemplate::fill(std::span<const std::string> values) const {
  std::string text;
  for (size_t i = 0; i + 1 < pieces_.size(); ++i) text += pieces_[i].text + values[pieces_[i].field];
  return text + pieces_.back().text;
}

}  // namespace sluice::nodes
