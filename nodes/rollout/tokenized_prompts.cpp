#include "nodes/rollout/tokenized_prompts.h"

#include <algorithm>
#include <string>

#include "base/error.h"
#include "base/text/strings.h"
#include "nodes/columns/columns.h"

namespace sluice::nodes {
namespace {

[[noreturn]] void fail_because_of_no_tokens(const engine::Group& group) {
  const std::string& prompt = group.read(columns::kPrompt)[0];
  throw UserError(
      "the prompt of group " + std::to_string(group.index) + " " +
          (prompt.empty() ? "is empty" : "has no tokens: the tokenizer knows none of its text, " + sluice::quoted(prompt)),
      "remove it from the prompts; rlhf-run validate FILE.toml --data names its row");
}

}  // namespace

const std::vector<int64_t>& TokenizedPrompts::of(const engine::Group& prompt) const {
  const auto [place, missing] = tokens_.try_emplace(key_of(prompt));
  if (missing) place->second = text_->tokenizer().encode(prompt.read(columns::kPrompt)[0], adds_special_tokens(prompt));
  if (place->second.empty()) fail_because_of_no_tokens(prompt);
  return place->second;
}

std::vector<int64_t> TokenizedPrompts::take(const engine::Group& prompt) {
  of(prompt);
  return std::move(tokens_.extract(key_of(prompt)).mapped());
}

void TokenizedPrompts::forget(const engine::Group& prompt) { tokens_.erase(key_of(prompt)); }

bool TokenizedPrompts::adds_special_tokens(const engine::Group& prompt) const {
  if (special_) return *special_;
  const auto of_conversation = [](const engine::Group::NamedColumn& column) {
    return column.spec == columns::kMessages.spec() && !column.data.entries<std::string>()[0].empty();
  };
  return std::ranges::none_of(prompt.columns, of_conversation);
}

}  // namespace sluice::nodes
