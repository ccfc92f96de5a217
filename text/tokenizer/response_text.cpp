#include "text/tokenizer/response_text.h"

#include <algorithm>

namespace sluice::text {

void ResponseText::push(int64_t id) {
  sure_before_ = said_.size();
  const bool is_special = tokenizer_->is_special(id);
  special_ = is_special ? tokenizer_->id_to_token(id).value_or("") : "";
  if (is_special) return;
  const std::string piece = stream_.push(id);
  if (piece.empty()) {
    waiting_.push_back(id);
    unsure_ = if_it_ended_here();
    return;
  }
  said_ += piece;
  unsure_.clear();
  waiting_ = {id};
  has_said_ = true;
}

// The first token of a text may lose its blank, so what waits is decoded after the token before it.
std::string ResponseText::if_it_ended_here() const {
  const std::string text = tokenizer_->decode(waiting_);
  if (!has_said_) return text;
  const std::string before = tokenizer_->decode(std::span(waiting_).first(1));
  return text.starts_with(before) ? text.substr(before.size()) : std::string();
}

bool ResponseText::has(const std::vector<std::string>& texts) const {
  if (!special_.empty()) return std::ranges::find(texts, special_) != texts.end();
  size_t longest = 0;
  for (const std::string& text : texts) longest = std::max(longest, text.size());
  if (longest == 0) return false;
  const size_t reach = sure_before_ - std::min(sure_before_, longest - 1);
  const size_t begin = std::min(std::max(turn_begin_, reach), said_.size());
  const std::string window = said_.substr(begin) + unsure_;
  return std::ranges::any_of(texts, [&](const std::string& text) { return window.find(text) != std::string::npos; });
}

std::string ResponseText::turn() const {
  const std::string text = all();
  return text.substr(std::min(turn_begin_, text.size()));
}

}  // namespace sluice::text
