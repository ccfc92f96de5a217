#include "data/preference_row.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text/utf8.h"
#include "data/messages.h"

namespace sluice::data {
namespace {

Json slice(const Json& messages, size_t begin, size_t end) {
  Json part = Json::array();
  for (size_t i = begin; i < end; ++i) part.push_back(messages[i]);
  return part;
}

PreferencePair split_messages(const Json& chosen, const Json& rejected) {
  const size_t most = std::min(chosen.size(), rejected.size()) - 1;
  size_t shared = 0;
  while (shared < most && same_json(chosen[shared], rejected[shared])) ++shared;
  return {shared == 0 ? Json() : slice(chosen, 0, shared), slice(chosen, shared, chosen.size()),
          slice(rejected, shared, rejected.size())};
}

size_t last_code_point(const std::string& text) {
  size_t at = text.empty() ? 0 : text.size() - 1;
  while (at > 0 && is_continuation(text[at])) --at;
  return at;
}

PreferencePair split_strings(const std::string& chosen, const std::string& rejected) {
  const size_t most = std::min(last_code_point(chosen), last_code_point(rejected));
  size_t shared = 0;
  while (shared < most && chosen[shared] == rejected[shared]) ++shared;
  while (shared > 0 && (is_continuation(chosen[shared]) || is_continuation(rejected[shared]))) --shared;
  // A space before the first difference belongs to the word after it: tokenizers join them.
  if (shared > 0 && chosen[shared] != rejected[shared] && chosen[shared - 1] == ' ') --shared;
  return {shared == 0 ? Json() : Json(chosen.substr(0, shared)), chosen.substr(shared), rejected.substr(shared)};
}

std::string plain_text(const Json& value) { return value.is_string() ? value.get<std::string>() : text_of(value); }

}  // namespace

PreferencePair split_common_prompt(const Json& chosen, const Json& rejected) {
  SLUICE_CHECK(chosen.is_array() == rejected.is_array(), "two forms of completions");
  if (chosen.is_array()) return split_messages(chosen, rejected);
  return split_strings(plain_text(chosen), plain_text(rejected));
}

std::vector<JsonlField> preference_fields(const PreferenceFields& names) {
  std::vector<JsonlField> fields{{names.chosen, "chosen_field", FieldKind::kTextOrMessages},
                                 {names.rejected, "rejected_field", FieldKind::kTextOrMessages}};
  if (!names.prompt.empty()) fields.push_back({names.prompt, "prompt_field", FieldKind::kTextOrMessages, /*required=*/false});
  return fields;
}

PreferencePair preference_pair(const std::vector<Json>& values, const PreferenceFields& names) {
  const Json& chosen = values[0];
  const Json& rejected = values[1];
  if (chosen.is_array() != rejected.is_array()) {
    throw UserError("of chosen and rejected one is a string and one a list of messages", "write both in the same form");
  }
  const Json prompt = names.prompt.empty() ? Json() : values[2];
  if (prompt.is_null() || prompt.is_array() != chosen.is_array()) {
    PreferencePair pair = split_common_prompt(chosen, rejected);
    if (pair.prompt.is_null()) {
      throw UserError("chosen and rejected have no common beginning, and there is no prompt in their form",
                      prompt.is_null() ? "add a prompt field" : "write the prompt in the form of chosen and rejected");
    }
    return pair;
  }
  if (chosen.is_array()) return {prompt, chosen, rejected};
  return {plain_text(prompt), plain_text(chosen), plain_text(rejected)};
}

}  // namespace sluice::data
