#pragma once

#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/contract.h"
#include "engine/contract/world/metrics.h"
#include "nodes/columns/action_mask.h"
#include "nodes/columns/columns.h"

// What nodes have that make scores out of scores. A sample that the mask takes out of losses and statistics has a part in none of
// what they record: its score may be a mean that stands for one which nobody could give.
namespace sluice::nodes {

/// Declares that the mask is read where a node writes one.
template <class P>
void describe_counted_samples(engine::Contract<P>& c) {
  c.reads_if_written(columns::kMask);
}

/// Those of `scores`[S] that belong to samples of a range which count.
std::vector<float> counted_scores(std::span<const float> scores, const std::vector<bool>& counted, engine::Range samples);

/// Writes `scores`[S] into a column, and record_scores() of the samples that count. Throws UserError that names column, group and
/// sample where a score is larger than a float32.
void write_scores(engine::MicroBatch& batch, const std::string& column, std::span<const double> scores,
                  engine::MetricsRecorder& metrics);

}  // namespace sluice::nodes
