#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>

#include "models/config/config.h"
#include "models/kernels/row_kernels.h"
#include "models/layers/segment.h"
#include "models/layers/weights.h"

namespace sluice::models {

/// What one of several ranks has of a model that they sample from together (tensor parallel): of every matrix the rows that make its
/// part of the outputs, so of attention some heads with their keys and values, and of embedding and head its part of the vocabulary.
/// Outputs are gathered, never summed: each number is one product of one rank, and has the bits that a rank alone gives it. (Shoeybi
/// et al. 2019, "Megatron-LM", arXiv 1909.08053, section 3, cuts the second matrix of each pair by its inputs instead, and adds up.)
///
/// A value; by itself it is the whole model. Belongs to the thread that computes.
struct ColumnShare {
  int place = 0, ranks = 1;
  SegmentExchange* exchange = nullptr;  // where there are several ranks

  bool is_whole() const { return ranks == 1; }

  /// Of so many columns, those of a place; of heads as many each, since their number divides.
  TokenRange of(int64_t size, int at) const { return {size * at / ranks, size * (at + 1) / ranks}; }
  TokenRange of(int64_t size) const { return of(size, place); }

  /// Which place has a column.
  int place_of(int64_t size, int64_t column) const;

  // What follows waits and ends as the exchange does. Of a whole model there is nothing to wait for, and all columns are here.

  /// own[rows,n] are the columns of this place, side by side; returns those of all places, [rows,size], in memory of room().
  template <class Room>
  OperandRows gathered(const OperandRows& own, int64_t rows, int64_t size, const Room& room) const {
    if (is_whole()) return own;
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

/// The part of a rank, without a copy. Norms and learned positions are all there, and so are the linear layers that a network does not
/// share out (FeedForward::is_shared_out()).
Weights part_of(const Weights& weights, const ColumnShare& share);

}  // namespace sluice::models
