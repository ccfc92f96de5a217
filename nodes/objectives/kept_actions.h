#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

namespace sluice::nodes {

/// The actions that count: those whose mask is not 0. Objectives work on their entries alone, so that what the others hold, even
/// a NaN, reaches neither a loss nor a gradient. A actions are given, K of them kept, which belong to S samples; a sample without
/// kept actions is no longer there.
class KeptActions {
 public:
  /// `mask` [A], undefined: all are kept and count 1. `offsets` [S'+1]: where the actions of each sample begin.
  KeptActions(const at::Tensor& mask, const std::vector<int64_t>& offsets, at::TensorOptions options);

  int64_t count() const { return count_; }      // K
  int64_t samples() const { return samples_; }  // S

  /// The entries of the kept actions, [A] -> [K]; differentiable. Undefined stays undefined.
  at::Tensor of(const at::Tensor& entries) const;

  const at::Tensor& weights() const { return weights_; }  // [K] how much each counts; undefined: 1

  at::Tensor weighted(const at::Tensor& x) const { return weights_.defined() ? x.mul(weights_) : x; }  // [K] -> [K]
  at::Tensor sum_by_sample(const at::Tensor& x) const;                                                 // [K] -> [S], unweighted
  at::Tensor mean_by_sample(const at::Tensor& x) const;                                                // [K] -> [S], weighted
  at::Tensor to_actions(const at::Tensor& by_sample) const;                                            // [S] -> [K]

  double total_weight() const;

 private:
  at::Tensor kept_;       // [K] int64 into the actions; undefined: all
  at::Tensor sample_of_;  // [K] int64
  at::Tensor weights_;
  int64_t count_ = 0;
  int64_t samples_ = 0;
};

}  // namespace sluice::nodes
