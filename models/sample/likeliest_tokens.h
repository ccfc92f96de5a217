#pragma once

#include <cstdint>
#include <span>

namespace sluice::models {

/// The tokens of a row in the order of their logits, the likeliest first, equal ones by id. Nothing is sorted as a whole: a
/// prefix is found by halving the range of logits in which it ends, with one pass over the row each time, until few are left in
/// it.
///
/// A view: `logits`, `weights` (e^((logit - top) scale)) and `ids`, scratch of the same size, must outlive it.
class LikeliestTokens {
 public:
  struct Prefix {
    int64_t count = 0;
    double mass = 0;    // sum of their weights
    int32_t last = -1;  // id
  };

  LikeliestTokens(std::span<const float> logits, std::span<const float> weights, float top, float scale, std::span<int32_t> ids)
      : logits_(logits), weights_(weights), ids_(ids), top_(top), spread_(1 / scale) {}

  /// The shortest prefix of at least one token that has `mass`, or `count` tokens, whichever comes first; all where neither does.
  Prefix reach(double mass, int64_t count) const;

  /// All with logit >= floor, at least one. Its `last` is not set.
  Prefix not_below(float floor) const;

 private:
  std::span<const float> logits_, weights_;
  std::span<int32_t> ids_;
  float top_, spread_;
};

}  // namespace sluice::models
