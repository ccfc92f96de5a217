#include "models/layers/feed_forward/expert_exchange.h"

#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::models {
namespace {

using ExchangedTensors = SegmentExchange::Tensors;

std::vector<ExchangedTensors> for_all_places(const Segment& segment) {
  return std::vector<ExchangedTensors>(static_cast<size_t>(segment.ranks));
}

std::vector<at::Tensor> rows_of_all(std::span<const at::Tensor> tensors, int64_t first, int64_t count) {
  std::vector<at::Tensor> rows;
  for (const at::Tensor& tensor : tensors) rows.push_back(tensor.narrow(0, first, count));
  return rows;
}

void add_all(std::vector<at::Tensor>&& tensors, ExchangedTensors& to) {
  to.insert(to.end(), std::make_move_iterator(tensors.begin()), std::make_move_iterator(tensors.end()));
}

}  // namespace

TensorShape ExpertExchange::counts_shape(const PassShape& shape) {
  return {shape.expert_ranks, shape.config.experts.count, at::kInt};
}

void ExpertExchange::exchange_counts(const Segment& segment, const RoutedRows& routed, const at::Tensor& counts) {
  const int first = segment.first_of_experts(), own = segment.place - first;
  auto* const of_own = counts.mutable_data_ptr<int32_t>() + own * counts.size(1);
  for (int64_t e = 0; e < counts.size(1); ++e) of_own[e] = static_cast<int32_t>(routed.end_of(e) - routed.begin_of(e));
  auto to = for_all_places(segment), from = for_all_places(segment);
  for (int member = 0; member < segment.expert_ranks; ++member) {
    if (member == own) continue;
    to[static_cast<size_t>(first + member)].push_back(counts.select(0, own));
    from[static_cast<size_t>(first + member)].push_back(counts.select(0, member));
  }
  segment.exchange->exchange(to, from);
}

ExpertExchange::ExpertExchange(const Segment& segment, const RoutedRows& routed, const at::Tensor& counts)
    : segment_(segment),
      routed_(routed),
      first_(segment.first_of_experts()),
      experts_(counts.size(1)),
      before_(static_cast<size_t>((segment.expert_ranks + 1) * experts_)),
      by_owner_(static_cast<size_t>(segment.expert_ranks)) {
  SLUICE_CHECK(experts_ % segment.expert_ranks == 0, "experts that ranks cannot share out");
  const auto* const of_all = counts.const_data_ptr<int32_t>();
  for (int64_t at = 0; at < segment.expert_ranks * experts_; ++at)
    before_[static_cast<size_t>(at + experts_)] = before_[static_cast<size_t>(at)] + of_all[at];
  for (int owner = 0; owner < segment.expert_ranks; ++owner) {
    cut(owner);
    rounds_ = std::max(rounds_, by_owner_[static_cast<size_t>(owner)].size());
  }
}

TokenRange ExpertExchange::experts_of(int member) const {
  const int64_t of_each = experts_ / segment_.expert_ranks;
  return {member * of_each, (member + 1) * of_each};
}

// The rows of an owner's experts, into rounds.
void ExpertExchange::cut(int owner) {
  auto& rounds = by_owner_[static_cast<size_t>(owner)];
  int64_t room = 0;
  const TokenRange experts = experts_of(owner);
  for (int64_t expert = experts.begin; expert < experts.end; ++expert) {
    const int64_t rows = before(segment_.expert_ranks, expert);
    for (int64_t first = 0; first < rows; first += kRows) {
      const int64_t count = std::min(kRows, rows - first);
      if (count > room || rounds.back().size() == kPieces) {
        rounds.emplace_back();
        room = kRows;
      }
      rounds.back().push_back({.expert = expert, .first = first, .count = count, .offset = kRows - room});
      room -= count;
    }
  }
}

std::span<const ExpertExchange::Piece> ExpertExchange::pieces_of(int owner, size_t round) const {
  const auto& rounds = by_owner_[static_cast<size_t>(owner)];
  return round < rounds.size() ? std::span<const Piece>(rounds[round]) : std::span<const Piece>();
}

// Of a piece those that a segment of the group has, counted from the first of the piece.
TokenRange ExpertExchange::rows_in(const Piece& piece, int member) const {
  const auto in_piece = [&](int64_t row) { return std::clamp<int64_t>(row - piece.first, 0, piece.count); };
  return {in_piece(before(member, piece.expert)), in_piece(before(member + 1, piece.expert))};
}

// The first of the own entries in it.
int64_t ExpertExchange::own_entry(const Piece& piece) const {
  const int64_t skipped = std::max<int64_t>(0, piece.first - before(own_member(), piece.expert));
  return routed_.begin_of(piece.expert) + skipped;
}

void ExpertExchange::send(size_t round, const Fill& fill, std::span<const at::Tensor> sent,
                          std::span<const at::Tensor> come) const {
  auto to = for_all_places(segment_), from = for_all_places(segment_);
  int64_t next = 0;
  for (int owner = 0; owner < segment_.expert_ranks; ++owner) {
    for (const Piece& piece : pieces_of(owner, round)) {
      const TokenRange rows = rows_in(piece, own_member());
      if (rows.size() == 0) continue;
      const bool stays = owner == own_member();
      std::vector<at::Tensor> there =
          stays ? rows_of_all(come, piece.offset + rows.begin, rows.size()) : rows_of_all(sent, next, rows.size());
      fill(routed_.entries(own_entry(piece), rows.size()), there);
      if (stays) continue;
      next += rows.size();
      add_all(std::move(there), to[static_cast<size_t>(first_ + owner)]);
    }
  }
  for_others(round, [&](int member, const Piece& piece, const TokenRange& rows) {
    add_all(rows_of_all(come, piece.offset + rows.begin, rows.size()), from[static_cast<size_t>(first_ + member)]);
  });
  segment_.exchange->exchange(to, from);
}

void ExpertExchange::send_back(size_t round, std::span<const at::Tensor> made, std::span<const at::Tensor> come) const {
  auto to = for_all_places(segment_), from = for_all_places(segment_);
  for_others(round, [&](int member, const Piece& piece, const TokenRange& rows) {
    add_all(rows_of_all(made, piece.offset + rows.begin, rows.size()), to[static_cast<size_t>(first_ + member)]);
  });
  for (int owner = 0; owner < segment_.expert_ranks; ++owner) {
    for (const Piece& piece : pieces_of(owner, round)) {
      const TokenRange rows = rows_in(piece, own_member());
      if (rows.size() == 0) continue;
      std::vector<at::Tensor> there = rows_of_all(come, own_entry(piece), rows.size());
      if (owner != own_member()) {
        add_all(std::move(there), from[static_cast<size_t>(first_ + owner)]);
        continue;
      }
      const std::vector<at::Tensor> here = rows_of_all(made, piece.offset + rows.begin, rows.size());
      for (size_t i = 0; i < there.size(); ++i) there[i].copy_(here[i]);
    }
  }
  segment_.exchange->exchange(to, from);
}

// Calls what(member, piece, rows) for the rows of other segments in what this rank computes.
void ExpertExchange::for_others(size_t round, const std::function<void(int, const Piece&, const TokenRange&)>& what) const {
  for (int member = 0; member < segment_.expert_ranks; ++member) {
    if (member == own_member()) continue;
    for (const Piece& piece : pieces_of(own_member(), round)) {
      const TokenRange rows = rows_in(piece, member);
      if (rows.size() > 0) what(member, piece, rows);
    }
  }
}

}  // namespace sluice::models
