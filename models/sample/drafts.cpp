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

void DraftAgreement::set_costs(double guess, double doubling_rows) {
  guess_cost_ = guess;
  doubling_rows_ = doubling_rows;
}

// With n guesses a step gives 1 + p + ... + p^n tokens of a sample, and takes 1 + n * cost as long as without. Where guesses cost
// as much as they could save, not even one is tried.
int64_t DraftAgreement::next(int64_t most, int64_t samples) {
  const auto rows = static_cast<double>(samples);
  const double cost = guess_cost_ + rows / (rows + doubling_rows_);
  if (cost >= 1) return 0;
  if (rest_ > 0) {
    --rest_;
    return 0;
  }
  int64_t best = 0;
  double tokens = 1, all_right = 1, best_rate = 1;
  for (int64_t n = 1; n <= most; ++n) {
    tokens += all_right *= rate();
    const double of_time = tokens / (1 + static_cast<double>(n) * cost);
    if (of_time > best_rate) best = n, best_rate = of_time;
  }
  if (best > 0) {
    next_rest_ = kFirstRest;
    return best;
  }
  rest_ = next_rest_;
  next_rest_ = std::min(2 * next_rest_, kLongestRest);
  return std::min<int64_t>(1, most);
}

void DraftAgreement::learn(int64_t guessed, int64_t right) {
  constexpr double kKept = 0.98;
  if (guessed == 0) return;
  right_ = kKept * right_ + static_cast<double>(right);
  judged_ = kKept * judged_ + static_cast<double>(std::min(guessed, right + 1));
}

}  // namespace sluice::models
