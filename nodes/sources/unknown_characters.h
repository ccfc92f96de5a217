#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/json/json.h"
#include "data/dataset.h"
#include "engine/plan/data_look.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::nodes {

/// Counts rows with characters that a tokenizer has no token for: as its reference it drops them, so that the model sees other
/// texts than the file has. White space, marks and control characters, which normalizers drop on purpose, do not count. One
/// thread.
class UnknownCharacters {
 public:
  /// `model`: whose tokenizer makes tokens of the rows; empty: the one that samples. Counts nothing where its folder has none
  /// that can be read, which is told elsewhere.
  UnknownCharacters(const std::string& model, const engine::DataLook& look);

  /// A text of the row `id`, or all texts and contents of messages in its values.
  void look_at(const std::string& text, const data::Dataset& rows, data::Dataset::RowId id);
  void look_at(const std::vector<Json>& values, const data::Dataset& rows, data::Dataset::RowId id);

  /// Once all rows were looked at: one warning, with the first of them, where there are any.
  void warn(engine::DataLook& look) const;

 private:
  void add_contents(const Json& value, std::string& text) const;
  std::optional<std::string_view> first_unknown(std::string_view text);
  bool is_dropped(std::string_view character, char32_t code_point);

  std::string model_;
  std::optional<text::Tokenizer> tokenizer_;  // nothing: it has a token for every byte, or there is none
  std::unordered_map<std::string, bool> dropped_;
  int64_t rows_ = 0, rows_with_some_ = 0;
  std::string first_;
  SourceSpan where_first_;
};

}  // namespace sluice::nodes
