#include "models/layers/feed_forward/expert_share_step.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "models/kernels/row_kernels.h"
#include "models/layers/feed_forward/experts.h"
#include "models/layers/feed_forward/routing.h"
#include "models/layers/segment.h"

namespace sluice::models {
namespace {

using SentTensors = SegmentExchange::Tensors;

/// One step. Scratch has room for all tokens going through the experts of one rank, so that it does not grow with the routing.
class ExpertShareStep {
 public:
  ExpertShareStep(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows, StepScratch& scratch)
      : config_(config),
        experts_(config.experts),
        packed_(packed),
        rows_(rows),
        share_(rows.share),
        own_(share_.experts_of(experts_.count)),
        columns_(share_.of(config.hidden_size)),
        scratch_(scratch) {}

  void run(const RoutedRows& routed) const {
    send_rows(routed);
    const int32_t begin = routed.first[own_.begin], count = routed.first[own_.end] - begin;
    gather(routed.entries(begin, count), precision(), rows_.x, hidden(), memory_of(own_rows()));
    float* const results = scratch_.floats(kResults, entries() * columns_.size());
    float* const y =
        columns_.size() == hidden() ? results + begin * hidden() : scratch_.floats(kOwnResults, entries() * hidden());
    compute(routed.first + own_.begin, y);
    gather_results(routed, y, count, results);
    for (int64_t e = 0; e < experts_.count; ++e) {
      add_weighted(routed.of(e), results + routed.begin_of(e) * columns_.size(), columns_.size(), rows_.out + columns_.begin,
                   hidden());
    }
  }

  // How many rows each expert has comes first: so many rows come then.
  void assist() const {
    const int from = share_.place % share_.ranks;
    int32_t* const first = scratch_.ints(kFirstRows, own_.size() + 1);
    first[0] = 0;
    exchange({}, from, numbers(first + 1, own_.size()));
    const int64_t count = first[own_.size()];
    exchange({}, from, operands(own_rows(), count));
    float* const y = scratch_.floats(kOwnResults, entries() * hidden());
    compute(first, y);
    send_results(y, count, {});
  }

 private:
  // After those of the step that routes, which has up to eight.
  enum Floats : size_t { kResults = 8, kOwnResults, kHiddenRows, kBetween, kActivations, kSentRows };
  enum Ints : size_t { kFirstRows = 8 };

  int64_t hidden() const { return config_.hidden_size; }
  int64_t entries() const { return rows_.tokens * experts_.per_token; }
  Precision precision() const { return packed_[static_cast<size_t>(1 + 2 * own_.begin)].matrix.precision(); }
  OperandRows own_rows() const { return scratch_.operand(kHiddenRows, precision(), entries() * hidden()); }

  static void* memory_of(const OperandRows& rows) { return const_cast<void*>(rows.data()); }

  at::Tensor operands(const OperandRows& rows, int64_t count) const {
    return at::from_blob(memory_of(rows), {count, hidden()}, rows.wide ? at::kFloat : at::kBFloat16);
  }
  static at::Tensor numbers(int32_t* from, int64_t count) { return at::from_blob(from, {count}, at::kInt); }

  // Columns of so many rows of [rows,size].
  static at::Tensor columns_of(float* x, int64_t rows, int64_t size, const TokenRange& columns) {
    return at::from_blob(x, {rows, size}, at::kFloat).narrow(1, columns.begin, columns.size());
  }

  // y[own rows,H] of the experts of this place, whose rows lie side by side in own_rows(), from first[0] on.
  void compute(const int32_t* first, float* y) const {
    const int64_t size = experts_.size;
    const OperandRows rows = own_rows(), inner = scratch_.operand(kActivations, precision(), rows_.tokens * size);
    float* const between = scratch_.floats(kBetween, rows_.tokens * 2 * size);
    for (int64_t e = 0; e < own_.size(); ++e) {
      const int64_t begin = first[e] - first[0], count = first[e + 1] - first[e];
      if (count == 0) continue;
      const PackedLinear& gate_up = packed_[static_cast<size_t>(1 + 2 * (own_.begin + e))];
      const PackedLinear& down = packed_[static_cast<size_t>(2 + 2 * (own_.begin + e))];
      project(gate_up, static_cast<const char*>(rows.data()) + begin * hidden() * bytes_of(precision()), count, between);
      activate(config_.activation, between, between + size, 2 * size, count, size, inner);
      project(down, inner.data(), count, y + begin * hidden());
    }
  }

  // To places without columns, each of which has its rows of one that has.
  void send_rows(const RoutedRows& routed) const {
    if (share_.places() == share_.ranks) return;
    std::vector<SentTensors> counts(places()), rows(places());
    const OperandRows all = scratch_.operand(kSentRows, precision(), entries() * hidden());
    int32_t* next = scratch_.ints(kFirstRows, experts_.count);
    int64_t sent = 0;
    for (int place = share_.ranks; place < share_.expert_ranks; ++place) {
      if (place % share_.ranks != share_.place) continue;
      const TokenRange of = share_.experts_of(experts_.count, place);
      const int64_t begin = routed.first[of.begin], count = routed.first[of.end] - begin;
      counts[static_cast<size_t>(place)].push_back(numbers(next, of.size()));
      for (int64_t e = of.begin; e < of.end; ++e) *next++ = static_cast<int32_t>(routed.first[e + 1] - begin);
      const OperandRows there = rows_from(all, sent * hidden());
      gather(routed.entries(begin, count), precision(), rows_.x, hidden(), memory_of(there));
      rows[static_cast<size_t>(place)].push_back(operands(there, count));
      sent += count;
    }
    share_.exchange->exchange(counts, nothing());
    share_.exchange->exchange(rows, nothing());
  }

  static OperandRows rows_from(const OperandRows& rows, int64_t first) {
    if (rows.wide) return {.wide = rows.wide + first};
    return {.narrow = rows.narrow + first};
  }

  // results[entries,columns], in the order of the experts: those of this place are y[count,H], and may be there.
  void gather_results(const RoutedRows& routed, float* y, int64_t count, float* results) const {
    const int64_t size = columns_.size();
    std::vector<SentTensors> from(places());
    for (int place = 0; place < share_.expert_ranks; ++place) {
      const TokenRange of = share_.experts_of(experts_.count, place);
      const int64_t begin = routed.first[of.begin], rows = routed.first[of.end] - begin;
      const at::Tensor there = columns_of(results + begin * size, rows, size, {0, size});
      if (place != share_.place)
        from[static_cast<size_t>(place)].push_back(there);
      else if (size < hidden())
        there.copy_(columns_of(y, count, hidden(), columns_));
    }
    send_results(y, count, std::move(from));
  }

  // Their columns of y[count,H], to all places that have some.
  void send_results(float* y, int64_t count, std::vector<SentTensors> from) const {
    from.resize(places());
    std::vector<SentTensors> to(places());
    for (int place = 0; place < share_.ranks; ++place) {
      if (place == share_.place) continue;
      to[static_cast<size_t>(place)].push_back(columns_of(y, count, hidden(), share_.of(hidden(), place)));
    }
    share_.exchange->exchange(to, from);
  }

  void exchange(std::vector<SentTensors> to, int from_place, const at::Tensor& tensor) const {
    to.resize(places());
    std::vector<SentTensors> from(places());
    from[static_cast<size_t>(from_place)].push_back(tensor);
    share_.exchange->exchange(to, from);
  }

  size_t places() const { return static_cast<size_t>(share_.places()); }
  std::vector<SentTensors> nothing() const { return std::vector<SentTensors>(places()); }

  const ModelConfig& config_;
  const ExpertsConfig& experts_;
  const std::span<const PackedLinear> packed_;
  const StepRows& rows_;
  const ColumnShare& share_;
  const TokenRange own_;      // experts
  const TokenRange columns_;  // of results
  StepScratch& scratch_;
};

}  // namespace

void add_shared_out_experts(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                            const RoutedRows& routed, StepScratch& scratch) {
  ExpertShareStep(config, packed, rows, scratch).run(routed);
}

void assist_with_experts(const ModelConfig& config, std::span<const PackedLinear> packed, const StepRows& rows,
                         StepScratch& scratch) {
  ExpertShareStep(config, packed, rows, scratch).assist();
}

TokenRange Experts::outputs_of(size_t linear, size_t linears, int64_t outputs, const ColumnShare& share) const {
  const TokenRange all{0, outputs}, none{0, 0};
  if (linear == kRouter || is_shared_gate(linear, linears)) return share.has_columns() ? all : none;
  const bool has_shared = (linears - 1) % Mlp::kLinears != 0;
  const auto count = static_cast<int64_t>((linears - 1) / Mlp::kLinears) - (has_shared ? 1 : 0);
  const auto expert = static_cast<int64_t>((linear - 1) / Mlp::kLinears);
  if (!share.shares_experts() || expert == count) return share.of(outputs);
  const TokenRange own = share.experts_of(count);
  return own.begin <= expert && expert < own.end ? all : none;
}

}  // namespace sluice::models
