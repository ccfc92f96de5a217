#include "nodes/sources/unknown_characters.h"

#include <filesystem>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/unicode/unicode.h"
#include "text/unicode/utf8.h"

namespace sluice::nodes {
namespace {

constexpr uint16_t kDroppedOnPurpose = text::code_point_class::kSpace | text::code_point_class::kMark |
                                       text::code_point_class::kBertAccent | text::code_point_class::kBertControl;

std::optional<text::Tokenizer> tokenizer_that_drops(const std::filesystem::path& folder) {
  if (folder.empty()) return std::nullopt;
  try {
    text::Tokenizer tokenizer = text::Tokenizer::load(folder);
    if (!tokenizer.uncovered_bytes().empty()) return tokenizer;
  } catch (const UserError&) {
    // Who needs it says so.
  }
  return std::nullopt;
}

}  // namespace

UnknownCharacters::UnknownCharacters(const std::string& model, const engine::DataLook& look)
    : model_(model.empty() ? look.sampled_model() : model), tokenizer_(tokenizer_that_drops(look.folder_of(model_))) {}

void UnknownCharacters::look_at(const std::string& text, const data::Dataset& rows, data::Dataset::RowId id) {
  if (!tokenizer_) return;
  ++rows_;
  const auto unknown = first_unknown(text);
  if (!unknown || rows_with_some_++ > 0) return;
  first_ = *unknown;
  where_first_ = rows.where(id);
}

void UnknownCharacters::look_at(const std::vector<Json>& values, const data::Dataset& rows, data::Dataset::RowId id) {
  if (!tokenizer_) return;
  std::string text;
  for (const Json& value : values) add_contents(value, text);
  look_at(text, rows, id);
}

void UnknownCharacters::add_contents(const Json& value, std::string& text) const {
  if (value.is_string()) text += value.get_ref<const std::string&>();
  if (value.is_array())
    for (const Json& element : value) add_contents(element, text);
  if (value.is_object() && value.contains("content")) add_contents(value["content"], text);
}

std::optional<std::string_view> UnknownCharacters::first_unknown(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const text::CodePoint next = text::code_point_at(text.data() + at);
    const std::string_view character = text.substr(at, next.length);
    if (is_dropped(character, next.value)) return character;
    at += next.length;
  }
  return std::nullopt;
}

bool UnknownCharacters::is_dropped(std::string_view character, char32_t code_point) {
  if ((text::CodePointClasses::get()[code_point] & kDroppedOnPurpose) != 0) return false;
  const auto [known, is_new] = dropped_.try_emplace(std::string(character), false);
  if (is_new) known->second = tokenizer_->encode(character).empty();
  return known->second;
}

void UnknownCharacters::warn(engine::DataLook& look) const {
  if (rows_with_some_ == 0) return;
  const std::string of =
      rows_with_some_ == rows_ ? plural(rows_, "row") : std::to_string(rows_with_some_) + " of " + plural(rows_, "row");
  look.warning(
      "path",
      "the tokenizer of model '" + model_ + "' has no token for some characters of " + of + (look.all() ? "" : " looked at") +
          ": they are left out",
      {"the first one: " + sluice::quoted(first_) + " in " + where_first_.source->name + ":" + std::to_string(where_first_.line)},
      "data that the model knows, or a model that knows the data");
}

}  // namespace sluice::nodes
