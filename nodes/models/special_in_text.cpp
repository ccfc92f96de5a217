#include "nodes/models/special_in_text.h"

#include <algorithm>
#include <filesystem>
#include <optional>

#include "base/error.h"
#include "base/text/strings.h"
#include "text/tokenizer/tokenizer.h"

namespace sluice::nodes {
namespace {

std::optional<text::Tokenizer> tokenizer_in(const std::filesystem::path& folder) {
  if (folder.empty()) return std::nullopt;
  try {
    return text::Tokenizer::load(folder);
  } catch (const UserError&) {
    return std::nullopt;
  }
}

std::vector<std::string> special_names(const text::Tokenizer& tokenizer) {
  std::vector<std::string> names;
  for (int64_t id = 0; id < tokenizer.vocab_size(); ++id)
    if (tokenizer.is_special(id)) names.push_back(tokenizer.id_to_token(id).value_or(""));
  return names;
}

}  // namespace

void refuse_special_in_text(const std::string& model, std::string_view key, const std::vector<std::string>& texts,
                            engine::DataLook& look) {
  if (texts.empty()) return;
  const std::optional<text::Tokenizer> tokenizer = tokenizer_in(look.folder_of(model));
  if (!tokenizer) return;
  const std::vector<std::string> names = special_names(*tokenizer);
  for (const std::string& text : texts) {
    const auto is_within = [&](const std::string& name) { return !name.empty() && text.find(name) != std::string::npos; };
    const auto found = std::ranges::find_if(names, is_within);
    if (found == names.end() || std::ranges::find(names, text) != names.end()) continue;
    look.error(key,
               sluice::quoted(text) + " is never found: " + sluice::quoted(*found) +
                   " is a special token, which is no text and is found by its name alone",
               sluice::quoted(*found) + ", or what stands beside it");
  }
}

}  // namespace sluice::nodes
