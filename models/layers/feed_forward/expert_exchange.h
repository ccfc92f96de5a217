#pragma once

#include <ATen/core/Tensor.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "models/config/config.h"
#include "models/layers/feed_forward/routed_rows.h"
#include "models/layers/pass_shape.h"
#include "models/layers/segment.h"
#include "models/layers/tensor_shape.h"

namespace sluice::models {

/// How rows of a pass go to the ranks that own their experts, and back, where ranks share experts out (expert parallel, as in
/// Lepikhin et al. 2020, "GShard", arXiv 2006.16668, section 3.2; nothing is padded and no row is dropped). Segments next to each
/// other make a group of Segment::expert_ranks; of the experts of a layer each of its ranks has as many, next to each other too.
///
/// An owner works on the rows of one expert after the other, in the order of the tokens of the pass. They come to it in rounds,
/// of at most kRows rows, so what it holds of them does not depend on the routing; all owners have their rounds at the same time.
/// Every rank knows from the counts of all which rows go where, so rows alone are sent.
///
/// Belongs to the thread that computes. Waits and ends as the segment's exchange does; ranks of other groups are not waited for.
class ExpertExchange {
 public:
  static constexpr int64_t kRows = 1024;  // of a round; those of an expert are cut at multiples of it
  static constexpr size_t kPieces = 16;   // of a round: a message has room for so many times three tensors

  /// Rows of one expert in a round.
  struct Piece {
    int64_t expert = 0;
    int64_t first = 0, count = 0;  // of the rows that the expert has of the whole group
    int64_t offset = 0;            // of its rows among those of the round
  };

  /// The numbers of rows that the segments of the group have for each expert, [expert_ranks,E] int32.
  static TensorShape counts_shape(const PassShape& shape);

  /// Fills `counts`: own rows are `routed`.
  static void exchange_counts(const Segment& segment, const RoutedRows& routed, const at::Tensor& counts);

  ExpertExchange(const Segment& segment, const RoutedRows& routed, const at::Tensor& counts);

  size_t rounds() const { return rounds_; }

  /// What this rank computes in a round.
  std::span<const Piece> pieces(size_t round) const { return pieces_of(own_member(), round); }

  /// The experts of this rank.
  TokenRange own() const { return experts_of(own_member()); }

  /// Rows that a rank sends in a round at most.
  static int64_t most_sent(const PassShape& shape) {
    return std::min(shape.expert_ranks * kRows, shape.tokens * shape.config.experts.per_token);
  }

  /// Fills rows of `to` with what the own entries have: [count,...] each.
  using Fill = std::function<void(const ExpertRows& entries, std::span<const at::Tensor> to)>;

  /// Rows to their owners. `sent`: memory for most_sent() rows, of each number of a row a tensor; `come`, [kRows,...]: as many
  /// tensors, where the rows of pieces() come.
  void send(size_t round, const Fill& fill, std::span<const at::Tensor> sent, std::span<const at::Tensor> come) const;

  /// And what owners have made of them back: `made`, [kRows,...], as they came. `come`: [entries,...], in the order of the
  /// experts.
  void send_back(size_t round, std::span<const at::Tensor> made, std::span<const at::Tensor> come) const;

 private:
  int own_member() const { return segment_.place - first_; }  // of the group
  TokenRange experts_of(int member) const;
  std::span<const Piece> pieces_of(int owner, size_t round) const;
  TokenRange rows_in(const Piece& piece, int member) const;
  int64_t own_entry(const Piece& piece) const;
  int64_t before(int member, int64_t expert) const { return before_[static_cast<size_t>(member * experts_ + expert)]; }
  void cut(int owner);
  void for_others(size_t round, const std::function<void(int member, const Piece& piece, const TokenRange& rows)>& what) const;

  const Segment segment_;
  const RoutedRows routed_;
  const int first_;  // place of the first rank of the group
  const int64_t experts_;
  std::vector<int64_t> before_;  // [expert_ranks + 1,E]: rows of an expert in the segments in front of each one
  std::vector<std::vector<std::vector<Piece>>> by_owner_;  // and round
  size_t rounds_ = 0;
};

}  // namespace sluice::models
