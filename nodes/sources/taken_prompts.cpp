#include "nodes/sources/taken_prompts.h"

#include <algorithm>
#include <utility>

#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

constexpr int kAscii = 128;

bool has_a_token(const text::Tokenizer& tokenizer, char c) { return !tokenizer.encode(std::string(1, c)).empty(); }

bool is_ascii(const std::string& text) {
  return std::ranges::all_of(text, [](char c) { return static_cast<unsigned char>(c) < kAscii; });
}

// Some tokenizers know few characters, and drop the others; white space alone some drop too.
bool knows_ascii(const text::Tokenizer& tokenizer) {
  for (int c = 0; c < kAscii; ++c) {
    if (!has_a_token(tokenizer, static_cast<char>(c))) return false;
  }
  return true;
}

}  // namespace

TakenPrompts::TakenPrompts(engine::PromptLimit limit, std::shared_ptr<const ModelText> model)
    : limit_(std::move(limit)), model_(std::move(model)), knows_ascii_(knows_ascii(model_->tokenizer())) {
  special_tokens_ = static_cast<int64_t>(model_->tokenizer().encode("", /*add_special=*/true).size());
}

// A character of ASCII is at least one token of such a tokenizer and at most one: normalizers leave it alone but for a space that
// they put before the text.
bool TakenPrompts::is_surely_taken(const std::string& text) const {
  if (!knows_ascii_ || text.empty() || !is_ascii(text)) return false;
  const auto most_tokens = static_cast<int64_t>(text.size()) + 1 + special_tokens_;
  return limit_.leaves_out_longer || most_tokens <= limit_.tokens;
}

int64_t TakenPrompts::tokens_of(const std::string& text, bool is_conversation) const {
  const bool add_special = limit_.add_special.value_or(!is_conversation);
  return static_cast<int64_t>(model_->tokenizer().encode(text, add_special).size());
}

std::optional<RowCheck::Fault> TakenPrompts::fault_of(const std::string& text, bool is_conversation) const {
  if (is_surely_taken(text)) return std::nullopt;
  const int64_t tokens = tokens_of(text, is_conversation);
  if (tokens == 0 && !text.empty())
    return RowCheck::Fault{"the prompt has no tokens: the tokenizer knows none of its text", "remove the row"};
  if (tokens == 0) return RowCheck::Fault{"the prompt is empty", "remove the row"};
  if (tokens <= limit_.tokens || limit_.leaves_out_longer) return std::nullopt;
  return RowCheck::Fault{"the prompt has " + plural(tokens, "token") + ", max_prompt_tokens of node '" + limit_.node + "' is " +
                             std::to_string(limit_.tokens),
                         "max_prompt_tokens >= " + std::to_string(tokens) + " in [nodes." + limit_.node +
                             "], or leave such prompts out with prompt_too_long = \"drop\""};
}

}  // namespace sluice::nodes
