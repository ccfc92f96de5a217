#pragma once

#include <cstddef>
#include <string>

#include "engine/contract/contract.h"
#include "engine/contract/world/metrics.h"
#include "engine/observe/engine_metrics.h"

// What a node records that takes single samples out of what is trained on: the engine makes rollout/dropped_by_length of it.
namespace sluice::nodes {

/// Declares the two shares. `samples` says which: "share of the samples that are masked".
template <class P>
void describe_dropped_samples(engine::Contract<P>& c, const std::string& samples) {
  using engine::metrics::of_filter;
  c.metric(of_filter("NODE", engine::metrics::kDroppedSamples), engine::Metric::kMean, samples);
  c.metric(of_filter("NODE", engine::metrics::kDroppedTokens), engine::Metric::kMean, "share of the actions that these have");
}

/// Of each sample that the node is given.
inline void record_sample(const std::string& node, bool is_dropped, size_t actions, engine::MetricsRecorder& metrics) {
  using engine::metrics::of_filter;
  metrics.mean(of_filter(node, engine::metrics::kDroppedSamples), is_dropped);
  metrics.mean(of_filter(node, engine::metrics::kDroppedTokens), is_dropped, static_cast<double>(actions));
}

}  // namespace sluice::nodes
