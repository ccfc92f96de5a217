#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <span>

#include "models/config/config.h"
#include "models/kernels/row_kernels.h"
#include "models/layers/segment.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// What one of several ranks has of a model that they sample from together (tensor parallel): of every matrix the rows that make
/// its part of the outputs, so of attention some heads with their keys and values, and of embedding and head its part of the
/// vocabulary. Outputs are gathered, never summed: each number is one product of one rank, and has the bits that a rank alone
/// gives it. (Shoeybi et al. 2019, "Megatron-LM", arXiv 1909.08053, section 3, cuts the second matrix of each pair by its inputs
/// instead, and adds up.)
///
/// Experts of a mixture may be shared out whole instead (expert parallel; Lepikhin et al. 2020, "GShard", arXiv 2006.16668,
/// section 3): so many next to each other a rank, also among more ranks than have columns. Those after the latter have experts
/// alone.
///
/// A value; by itself it is the whole model. Belongs to the thread that computes.
struct ColumnShare {
  int place = 0, ranks = 1;             // of those that have columns: the first ones
  SegmentExchange* exchange = nullptr;  // where there are several ranks
  int expert_ranks = 1;  // a multiple of `ranks`: those that have whole experts; 1: all have columns of each expert

  int places() const { return std::max(ranks, expert_ranks); }
  bool is_whole() const { return places() == 1; }
  bool has_columns() const { return place < ranks; }
  bool has_all_columns() const { return ranks == 1 && has_columns(); }
  bool shares_experts() const { return expert_ranks > 1; }

  /// Of so many columns, those of a place; of heads as many each, since their number divides. A place that has none is after
  /// all.
  TokenRange of(int64_t size, int at) const {
    return {size * std::min(at, ranks) / ranks, size * std::min(at + 1, ranks) / ranks};
  }
  TokenRange of(int64_t size) const { return of(size, place); }

  /// Which of so many experts a place has, where they are shared out.
  TokenRange experts_of(int64_t experts, int at) const {
    return {experts * at / expert_ranks, experts * (at + 1) / expert_ranks};
  }
  TokenRange experts_of(int64_t experts) const { return experts_of(experts, place); }

  /// Which place has a column.
  int place_of(int64_t size, int64_t column) const;

  // What follows is for places with columns. It waits and ends as the exchange does; where one has all of them, it has nothing to
  // wait for.

  /// own[rows,n] are the columns of this place, side by side; returns those of all places, [rows,size], in memory of room().
  template <class Room>
  OperandRows gathered(const OperandRows& own, int64_t rows, int64_t size, const Room& room) const {
    if (has_all_columns()) return own;
    const OperandRows all = room();
    gather(own, rows, size, all);
    return all;
  }

  /// Likewise, into `all`: where there are several ranks.
  void gather(const OperandRows& own, int64_t rows, int64_t size, const OperandRows& all) const;

  /// x[rows,size] has the columns of this place; those of the others come.
  void gather(float* x, int64_t rows, int64_t size) const;

  /// As the second, to the rank at place 0 alone.
  void gather_at_first(const float* own, int64_t rows, int64_t size, float* all) const;

  /// x[rows,size], of which this place has those rows that `places` says; those of the others come.
  void gather_rows(float* x, int64_t size, std::span<const int> places) const;
};

/// The model as a rank's KV cache and attention see it: with its part of the heads. `ranks` divides the heads of keys.
ModelConfig heads_of(const ModelConfig& config, int ranks);

/// The part of a rank, without a copy. Norms and learned positions are all there, and of the linear layers of the network what
/// that says (FeedForward::outputs_of()). Of a place without columns it is the experts alone: the other tensors are undefined.
Weights part_of(const Weights& weights, const ColumnShare& share);

}  // namespace sluice::models
