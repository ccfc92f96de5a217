#include <algorithm>

#include "models/kernels/row_kernels.h"
#include "models/layers/feed_forward/expert_share_step.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/routing.h"

namespace sluice::models {
namespace {

/// One step of generation. Scratch has room for every token going through one expert, so that it does not grow with the
/// routing.
class ExpertStep {
 public:
  ExpertStep(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows, StepScratch& scratch)
      : config_(config), experts_(config.experts), packed_(packed), rows_(rows), share_(rows.share), scratch_(scratch) {}

  void run() const {
    if (!share_.has_columns()) return assist_with_experts(config_, packed_, rows_, scratch_);
    if (!rows_.accumulate) std::fill_n(rows_.out, rows_.tokens * config_.hidden_size, 0.0f);
    const int64_t entries = rows_.tokens * experts_.per_token;
    const RouterRows routed{scratch_.floats(kLogits, rows_.tokens * experts_.count),
                            rows_.chosen != nullptr ? rows_.chosen : scratch_.ints(kChosen, entries),
                            scratch_.floats(kWeights, entries)};
    project(packed_[0], rows_.x, rows_.tokens, routed.logits);
    route(experts_, rows_.tokens, routed, rows_.routes);
    int32_t *const places = scratch_.ints(kPlaces, entries), *const first = scratch_.ints(kFirst, experts_.count + 1);
    sort_by_expert(experts_, rows_.tokens, routed.chosen, places, first);
    if (share_.shares_experts())
      add_shared_out_experts(config_, packed_, rows_, {places, first, routed.weights, experts_.per_token}, scratch_);
    else if (share_.has_all_columns())
      add_whole(first, places, routed.weights);
    else
      add_shares(first, places, routed.weights);
    if (has_shared()) add_shared_expert();
  }

 private:
  enum Floats : size_t { kLogits, kWeights, kProjected, kResult, kSharedWeight, kRead, kInner, kAllInner };  // operands too
  enum Ints : size_t { kChosen, kPlaces, kFirst };

  ExpertRows shared_rows() const {
    float* const weights = scratch_.floats(kSharedWeight, rows_.tokens);
    project(packed_.back(), rows_.x, rows_.tokens, weights);
    sigmoid(weights, rows_.tokens);
    return {.count = rows_.tokens, .weights = weights};
  }

  bool has_shared() const { return experts_.shared_size > 0; }

  ExpertRows rows_of(int64_t expert, const int32_t* first, const int32_t* places, const float* weights) const {
    return {.places = places + first[expert],
            .count = first[expert + 1] - first[expert],
            .per_token = experts_.per_token,
            .weights = weights};
  }

  // One after the other, so that there is memory for one.
  void add_whole(const int32_t* first, const int32_t* places, const float* weights) const {
    const auto add = [this](int64_t expert, int64_t size, const ExpertRows& rows) {
      if (rows.count == 0) return;
      const OperandRows inner = scratch_.operand(kInner, precision(), rows_.tokens * size);
      enter(expert, size, rows, inner);
      leave(expert, rows, inner);
    };
    for (int64_t e = 0; e < experts_.count; ++e) add(e, experts_.size, rows_of(e, first, places, weights));
  }

  // What all experts make of their rows is gathered at once, before any of them leaves.
  void add_shares(const int32_t* first, const int32_t* places, const float* weights) const {
    const int64_t size = experts_.size, own = share_.of(size).size(), entries = rows_.tokens * experts_.per_token;
    const OperandRows part = scratch_.operand(kInner, precision(), entries * own),
                      all = scratch_.operand(kAllInner, precision(), entries * size);
    for (int64_t e = 0; e < experts_.count; ++e)
      enter(e, own, rows_of(e, first, places, weights), rows_from(part, first[e] * own));
    share_.gather(part, entries, size, all);
    for (int64_t e = 0; e < experts_.count; ++e) leave(e, rows_of(e, first, places, weights), rows_from(all, first[e] * size));
  }

  void add_shared_expert() const {
    const int64_t size = experts_.shared_size, own = share_.of(size).size();
    const OperandRows part = scratch_.operand(kInner, precision(), rows_.tokens * own);
    const ExpertRows rows = shared_rows();
    enter(experts_.count, own, rows, part);
    leave(experts_.count, rows, share_.gathered(part, rows_.tokens, size, [&] {
      return scratch_.operand(kAllInner, precision(), rows_.tokens * size);
    }));
  }

  static OperandRows rows_from(const OperandRows& rows, int64_t first) {
    if (rows.wide) return {.wide = rows.wide + first};
    return {.narrow = rows.narrow + first};
  }

  Precision precision() const { return packed_.front().matrix.precision(); }

  // inner[count,size] of an expert, or the columns of it that are here.
  void enter(int64_t expert, int64_t size, const ExpertRows& rows, const OperandRows& inner) const {
    if (rows.count == 0) return;
    const PackedLinear& gate_up = packed_[static_cast<size_t>(1 + 2 * expert)];
    const int64_t width = gate_up.matrix.outputs();
    float* const projected = scratch_.floats(kProjected, rows_.tokens * width);
    project(gate_up, read(rows, precision()), rows.count, projected);
    activate(config_.activation, projected, projected + size, width, rows.count, size, inner);
  }

  // Adds to the columns of `out` that are here; what comes to the others, nobody reads.
  void leave(int64_t expert, const ExpertRows& rows, const OperandRows& inner) const {
    if (rows.count == 0) return;
    const PackedLinear& down = packed_[static_cast<size_t>(2 + 2 * expert)];
    const int64_t hidden = config_.hidden_size;
    float* const result = scratch_.floats(kResult, rows_.tokens * hidden);
    if (!share_.has_all_columns()) std::fill_n(result, rows.count * hidden, 0.0F);
    project(down, inner.data(), rows.count, result + share_.of(hidden).begin, hidden, false);
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
  const ColumnShare& share_;
  StepScratch& scratch_;
};

}  // namespace

void Experts::step(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                   StepScratch& scratch) const {
  ExpertStep(config, packed, rows, scratch).run();
}

}  // namespace sluice::models
