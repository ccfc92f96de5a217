#include "cli/model/chat_context.h"

#include <algorithm>
#include <utility>

namespace sluice::cli {
namespace {

Json message(const char* role, const std::string& content) { return {{"role", role}, {"content", content}}; }

size_t common_beginning(std::string_view a, std::string_view b) {
  return static_cast<size_t>(std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin());
}

}  // namespace

ChatContext::ChatContext(const text::Tokenizer& tokenizer, const text::ChatTemplate& chat, std::string system)
    : tokenizer_(tokenizer), template_(chat), system_(std::move(system)) {
  reset();
}

void ChatContext::reset() {
  messages_ = Json::array();
  if (!system_.empty()) messages_.push_back(message("system", system_));
  answers_.clear();
}

std::vector<int64_t> ChatContext::ask(const std::string& user) {
  messages_.push_back(message("user", user));
  context_ = template_.render(messages_, {.add_generation_prompt = true});
  const std::string_view text = context_;
  std::vector<int64_t> ids;
  size_t done = 0;  // bytes of the text that have become ids
  for (const Answer& said : answers_) {
    // A template may write more where the assistant is about to speak ("<think>") than in front of what it has said.
    const size_t begin = common_beginning(said.context, text);
    if (begin < done || !text.substr(begin).starts_with(said.text)) continue;
    append(text.substr(done, begin - done), ids);
    ids.insert(ids.end(), said.tokens.begin(), said.tokens.end());
    done = begin + said.text.size();
  }
  append(text.substr(done), ids);
  return ids;
}

void ChatContext::answer(std::span<const int64_t> tokens) {
  answers_.push_back({.context = context_,
                      .text = tokenizer_.decode(tokens, /*skip_special=*/true),
                      .tokens = std::vector<int64_t>(tokens.begin(), tokens.end())});
  messages_.push_back(message("assistant", answers_.back().text));
}

void ChatContext::append(std::string_view text, std::vector<int64_t>& ids) const {
  const std::vector<int64_t> more = tokenizer_.encode(text);
  ids.insert(ids.end(), more.begin(), more.end());
}

}  // namespace sluice::cli
