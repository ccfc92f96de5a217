#include "models/sample/drafts.h"

#include <algorithm>

namespace sluice::models {
namespace {

constexpr int64_t kLongest = 3, kShortest = 2;  // tokens that must be alike

/// Prompt, response and what was guessed, as one text.
class DraftedText {
 public:
  DraftedText(std::span<const int64_t> prompt, std::span<const int64_t> response, const std::vector<int64_t>& drafts)
      : prompt_(prompt), response_(response), drafts_(drafts) {}

  int64_t size() const { return std::ssize(prompt_) + std::ssize(response_); }

  int64_t operator[](int64_t at) const {
    if (at < std::ssize(prompt_)) return prompt_[static_cast<size_t>(at)];
    at -= std::ssize(prompt_);
    return at < std::ssize(response_) ? response_[static_cast<size_t>(at)]
                                      : drafts_[static_cast<size_t>(at - std::ssize(response_))];
  }

  // The end of the last place before the end where the last `count` tokens are; 0: none.
  int64_t end_of_last(int64_t count) const {
    for (int64_t end = size() - 1; end >= count; --end) {
      int64_t alike = 0;
      while (alike < count && (*this)[end - 1 - alike] == (*this)[size() - 1 - alike]) ++alike;
      if (alike == count) return end;
    }
    return 0;
  }

 private:
  const std::span<const int64_t> prompt_, response_;
  const std::vector<int64_t>& drafts_;
};

}  // namespace

void draft_by_ngram(std::span<const int64_t> prompt, std::span<const int64_t> response, int64_t most,
                    std::vector<int64_t>& drafts) {
  const DraftedText text(prompt, response, drafts);
  int64_t next = 0;
  for (int64_t count = kLongest; count >= kShortest && next == 0; --count) next = text.end_of_last(count);
  if (next == 0) return;
  for (int64_t i = 0; i < most; ++i) drafts.push_back(text[next + i]);
}

int64_t DraftLength::next(int64_t most) {
  if (rest_ > 0) {
    --rest_;
    return 0;
  }
  return std::min(length_, most);
}

void DraftLength::learn(int64_t guessed, int64_t right) {
  if (guessed == 0) return;
  const bool poor = 2 * right < guessed;
  poor_in_a_row_ = poor ? std::min<int64_t>(poor_in_a_row_ + 1, 5) : 0;
  rest_ = poor ? int64_t{1} << poor_in_a_row_ : 0;
  length_ = right == guessed ? std::max(length_, 2 * guessed) : right + 1;
}

}  // namespace sluice::models
