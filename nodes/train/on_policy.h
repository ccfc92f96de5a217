#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <span>
#include <utility>

#include "engine/contract/columns/micro_batch.h"

namespace sluice::nodes {

/// What is demanded of samples before the first optimizer step of an iteration.
enum class OnPolicy {
  kMeasured,  // how far they are from the weights that train is a metric
  kExact,     // they are of these weights, bit for bit
};

constexpr auto enum_names(OnPolicy) {
  return std::array{std::pair{OnPolicy::kMeasured, "measured"}, std::pair{OnPolicy::kExact, "exact"}};
}

/// Throws UserError naming the sample and the action, and what both say, where the log-probability that was sampled and the one
/// that is computed for training are not the same bits: the samples are of other weights, or of other settings, than those that
/// train. Generation and training add up in one order (docs/performance.md), so on the CPU nothing else makes them differ.
///
/// logprobs, rollout_logprobs [A] of the samples `chosen` of the micro-batch, constant, on the CPU
/// mask                       [A] actions that count 0 are not looked at; undefined: all are
void require_same_bits(const at::Tensor& logprobs, const at::Tensor& rollout_logprobs, const at::Tensor& mask,
                       const engine::MicroBatch& batch, std::span<const size_t> chosen);

}  // namespace sluice::nodes
