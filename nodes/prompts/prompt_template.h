#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::nodes {

/// A text with places for fields of a row, or for other texts that have names: "Question: {question}\n{meta.hint}". {{ and }} are
/// braces. Immutable.
class PromptTemplate {
 public:
  /// Throws UserError for a brace without its other one, and for {} without a name. It calls the text `key`, and says what a
  /// name may be: `{name} is NAMES`.
  explicit PromptTemplate(std::string_view text, std::string_view key = "prompt_template",
                          std::string_view names = "a field of the row");

  /// Each name once, in the order of their first places.
  const std::vector<std::string>& fields() const { return fields_; }

  /// `values` [fields()]
  std::string fill(std::span<const std::string> values) const;

 private:
  struct Piece {
    std::string text;
    size_t field = 0;  // after the text; of the last piece: none
  };

  size_t index_of(const std::string& field);

  std::vector<std::string> fields_;
  std::vector<Piece> pieces_;
};

}  // namespace sluice::nodes
