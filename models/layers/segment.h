#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <vector>

namespace sluice::models {

/// How the ranks that compute a pass together give each other what each of them needs. Belongs to the thread that computes.
class SegmentExchange {
 public:
  using Tensors = std::vector<at::Tensor>;

  virtual ~SegmentExchange() = default;

  /// `to` and `from` have the tensors for each place, and those that each place gives: as many, of the shapes and types that it
  /// gives. What is of the own place is left alone. Rows may be apart.
  ///
  /// Waits for: all ranks of the pass to call it as often. Ends when: they have, or the run is over, which it throws.
  virtual void exchange(std::span<const Tensors> to, std::span<const Tensors> from) = 0;
};

/// Tokens of a pass that lie side by side.
struct TokenRange {
  int64_t begin = 0, end = 0;

  int64_t size() const { return end - begin; }
  bool operator==(const TokenRange&) const = default;
};

/// The tokens of a pass that one of several ranks computes (sequence parallel): a stretch of them, wherever samples end.
/// Attention needs all tokens of a sample, so there each rank has some heads instead, of all tokens (Jacobs et al. 2023,
/// "DeepSpeed Ulysses", arXiv 2309.14509, section 3). Where there are more ranks than heads, the segments make blocks: the ranks
/// of a block have the heads of its tokens, and go to those of other blocks around a ring (models/layers/ring_attention.h). A
/// value; by itself it is the whole pass.
struct Segment {
  int64_t tokens = 0;  // of the whole pass
  int place = 0, ranks = 1;
  int ring = 1;                         // blocks, as many segments in each
  int expert_ranks = 1;                 // groups of so many segments share out the experts of a mixture (expert_exchange.h)
  SegmentExchange* exchange = nullptr;  // where there are several ranks

  int64_t begin_of(int other) const { return tokens * other / ranks; }
  int64_t size_of(int other) const { return begin_of(other + 1) - begin_of(other); }
  int64_t begin() const { return begin_of(place); }
  int64_t size() const { return size_of(place); }
  bool is_whole() const { return ranks == 1; }

  int head_ranks() const { return ranks / ring; }  // of a block, which divide the heads among them
  int block() const { return place / head_ranks(); }
  bool shares_experts() const { return expert_ranks > 1; }
  int first_of_experts() const { return place / expert_ranks * expert_ranks; }  // place of the first one of the group

  TokenRange block_of(int other) const { return {begin_of(other * head_ranks()), begin_of((other + 1) * head_ranks())}; }
};

/// From the rows of this segment with all heads, x[n,N*D], to the rows of its block with the heads of this place,
/// [B,N/head_ranks*D]: of several tensors at once. A whole pass has them already.
std::vector<at::Tensor> heads_of(const Segment& segment, const std::vector<at::Tensor>& rows);

/// And back.
std::vector<at::Tensor> rows_of(const Segment& segment, const std::vector<at::Tensor>& heads);

/// Where the rows of each sample of the pass begin in a segment: [S+1] of `sample_offsets`, which are those of the pass.
std::vector<int64_t> offsets_in(const Segment& segment, std::span<const int64_t> sample_offsets);

}  // namespace sluice::models
