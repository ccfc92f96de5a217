#pragma once

#include <filesystem>
#include <memory>
#include <string_view>

namespace sluice::nodes {

/// A JSON schema (draft 7), ready to check texts. Const use from many threads.
///
/// Refused, because it would be ignored or could not be checked safely: keywords of later drafts (prefixItems,
/// unevaluatedProperties, dependentRequired, ...), patternProperties, formats other than date, time and date-time, $ref to
/// another document or to something that is no schema, references that lead back to themselves, keywords one typing error away
/// from a real one. 1.0 is an integer; integers of any size are exact.
class JsonSchemaChecker {
 public:
  /// Throws UserError naming the file when it cannot be read, is no JSON, or no schema that can be checked.
  explicit JsonSchemaChecker(const std::filesystem::path& path);
  ~JsonSchemaChecker();

  /// True if `text` is JSON that is valid under the schema. Not JSON is also what nests deeper than 512, or has an object of more
  /// than 4096 keys. Throws text::RegexGaveUp when a pattern of the schema backtracks without bound on the text.
  bool accepts(std::string_view text) const;

 private:
  struct Schema;
  std::unique_ptr<Schema> schema_;
};

}  // namespace sluice::nodes
