#include "models/sample/likeliest_tokens.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "models/sample/sampling_kernels.h"

namespace sluice::models {
namespace {

constexpr int64_t kFew = 64;  // tokens that are sorted rather than looked over once more

}  // namespace

LikeliestTokens::Prefix LikeliestTokens::reach(double mass, int64_t count) const {
  const auto size = static_cast<int64_t>(logits_.size());
  const auto above = [&](float threshold) { return share_above(logits_.data(), weights_.data(), size, threshold); };
  const auto enough = [&](const RowShare& share) { return share.count > 0 && (share.mass >= mass || share.count >= count); };

  // The prefix ends within low < logit <= high: what is above high is too little.
  float high = top_, low = high;
  RowShare over_high, over_low;
  for (float distance = spread_;; distance *= 2) {
    low = top_ - distance;
    over_low = above(low);
    if (enough(over_low) || over_low.count == size) break;
    high = low;
    over_high = over_low;
  }
  while (over_low.count - over_high.count > kFew) {
    const float middle = low + (high - low) / 2;
    if (!(middle > low && middle < high)) break;  // equal logits, or an infinite distance
    const RowShare over_middle = above(middle);
    (enough(over_middle) ? low : high) = middle;
    (enough(over_middle) ? over_low : over_high) = over_middle;
  }

  const auto found = ids_.first(static_cast<size_t>(ids_between(logits_.data(), size, low, high, ids_.data())));
  std::sort(found.begin(), found.end(),
            [&](int32_t a, int32_t b) { return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b; });
  Prefix prefix{.count = over_high.count, .mass = over_high.mass};
  for (const int32_t id : found) {
    prefix = {.count = prefix.count + 1, .mass = prefix.mass + weights_[id], .last = id};
    if (prefix.mass >= mass || prefix.count >= count) break;
  }
  return prefix;
}

LikeliestTokens::Prefix LikeliestTokens::not_below(float floor) const {
  const float below = std::nextafter(std::min(floor, top_), -std::numeric_limits<float>::infinity());
  const RowShare share = share_above(logits_.data(), weights_.data(), static_cast<int64_t>(logits_.size()), below);
  return {.count = share.count, .mass = share.mass};
}

}  // namespace sluice::models
