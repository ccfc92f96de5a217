#include <algorithm>

#include "models/kernels/row_kernels.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/routing.h"

namespace sluice::models {
namespace {

/// One step of generation. Scratch has room for every token going through one expert, so that it does not grow with the
/// routing.
class ExpertStep {
 public:
  ExpertStep(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows, StepScratch& scratch)
      : config_(config), experts_(config.experts), packed_(packed), rows_(rows), scratch_(scratch) {}

  void run() const {
    if (!rows_.accumulate) std::fill_n(rows_.out, rows_.tokens * config_.hidden_size, 0.0f);
    const int64_t entries = rows_.tokens * experts_.per_token;
    const RouterRows routed{scratch_.floats(kLogits, rows_.tokens * experts_.count), scratch_.ints(kChosen, entries),
                            scratch_.floats(kWeights, entries)};
    project(packed_[0], rows_.x, rows_.tokens, routed.logits);
    route(experts_, rows_.tokens, routed);
    int32_t *const places = scratch_.ints(kPlaces, entries), *const first = scratch_.ints(kFirst, experts_.count + 1);
    sort_by_expert(experts_, rows_.tokens, routed.chosen, places, first);
    for (int64_t e = 0; e < experts_.count; ++e) {
      add_expert(e, experts_.size,
                 {.places = places + first[e],
                  .count = first[e + 1] - first[e],
                  .per_token = experts_.per_token,
                  .weights = routed.weights});
    }
    if (experts_.shared_size > 0) add_expert(experts_.count, experts_.shared_size, shared_rows());
  }

 private:
  enum Floats : size_t { kLogits, kWeights, kProjected, kResult, kSharedWeight, kRead, kInner };  // operands too
  enum Ints : size_t { kChosen, kPlaces, kFirst };

  ExpertRows shared_rows() const {
    float* const weights = scratch_.floats(kSharedWeight, rows_.tokens);
    project(packed_.back(), rows_.x, rows_.tokens, weights);
    sigmoid(weights, rows_.tokens);
    return {.count = rows_.tokens, .weights = weights};
  }

  void add_expert(int64_t expert, int64_t size, const ExpertRows& rows) const {
    if (rows.count == 0) return;
    const auto at = static_cast<size_t>(1 + 2 * expert);
    const PackedLinear &gate_up = packed_[at], &down = packed_[at + 1];
    const int64_t hidden = config_.hidden_size, width = gate_up.matrix.outputs();
    float* const projected = scratch_.floats(kProjected, rows_.tokens * width);
    project(gate_up, read(rows, gate_up.matrix.precision()), rows.count, projected);
    const OperandRows inner = scratch_.operand(kInner, down.matrix.precision(), rows_.tokens * size);
    activate(config_.activation, projected, projected + size, width, rows.count, size, inner);
    float* const result = scratch_.floats(kResult, rows_.tokens * hidden);
    project(down, inner.data(), rows.count, result);
    add_weighted(rows, result, hidden, rows_.out);
  }

  // Rows side by side.
  const void* read(const ExpertRows& rows, Precision precision) const {
    if (rows.places == nullptr) return rows_.x;
    const OperandRows gathered = scratch_.operand(kRead, precision, rows_.tokens * config_.hidden_size);
    void* const to = gathered.wide ? static_cast<void*>(gathered.wide) : gathered.narrow;
    gather(rows, precision, rows_.x, config_.hidden_size, to);
    return to;
  }

  const ModelConfig& config_;
  const ExpertsConfig& experts_;
  const std::span<const PackedLinear> packed_;
  const StepRows& rows_;
  StepScratch& scratch_;
};

}  // namespace

void Experts::step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                   StepScratch& scratch) const {
  ExpertStep(config, packed, rows, scratch).run();
}

}  // namespace sluice::models
