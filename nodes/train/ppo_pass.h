#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "nodes/forward/ragged.h"

namespace sluice::nodes {

/// The optimizer step of train_ppo that is worked on.
struct PpoStep {
  uint64_t seed = 0;
  int64_t iteration = 0;
  int64_t epoch = 0;          // of a barrier
  int64_t made = 0;           // steps before it in the iteration
  std::vector<double> found;  // by the objective's looks at it
  double advantage_mean = 0;  // where advantages are whitened
  double advantage_scale = 1;
};

/// Some samples of a micro-batch on their way through the models of train_ppo. [A'] are their actions.
struct PpoPass {
  const engine::MicroBatch& batch;
  std::vector<size_t> chosen;  // samples
  RaggedSamples samples;       // of those
  // Old log-probabilities [A] of the whole micro-batch, under the weights before the iteration's first step; empty: of a barrier
  // that takes them from a column, or of the one step that is made with all of the iteration.
  std::span<const float> recomputed;

  /// [A'] of a column of actions; undefined if no node writes it.
  at::Tensor column(const engine::ColumnSpec& spec) const;
  at::Tensor mask() const;

  /// [S'] What a mean over actions counts each of the samples.
  std::vector<double> counted_by_actions() const;
};

}  // namespace sluice::nodes
