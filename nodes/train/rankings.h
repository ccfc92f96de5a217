#pragma once

#include <ATen/core/Tensor.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "engine/contract/columns/layout.h"
#include "nodes/train/unit_passes.h"

namespace sluice::nodes {

/// What is made of the scores of a group.
enum class Comparison {
  kBestAndWorst,  // one pair: the best sample and the worst
  kAllPairs,      // every two samples of different scores, each pair by itself
  kPlackettLuce,  // the same samples as one ranking
};

constexpr auto enum_names(Comparison) {
  return std::array{std::pair{Comparison::kBestAndWorst, "best_and_worst"}, std::pair{Comparison::kAllPairs, "all_pairs"},
                    std::pair{Comparison::kPlackettLuce, "plackett_luce"}};
}

/// Samples of one group that are compared.
struct Ranking {
  struct Pair {
    size_t better = 0, worse = 0;  // indices into samples
  };

  size_t group = 0;
  std::vector<size_t> samples;  // places in the layout, ascending; at least two
  std::vector<Pair> pairs;      // at least one
};

/// Of each group that has two different scores. `scores` [S]; `mask` [A]: samples of which no action has a weight are passed
/// over; empty: none is. Throws UserError for a score that is not finite.
std::vector<Ranking> rankings_by_score(const engine::Layout& layout, std::span<const float> scores, std::span<const float> mask,
                                       Comparison comparison);

/// How rankings are computed in passes of at most `limit` tokens.
UnitPasses<Ranking> passes_of_rankings(const engine::Layout& layout, const std::vector<Ranking>& rankings, int64_t limit);

/// The samples of rankings as a batch of their own: N samples, ascending, of P pairs.
struct RankedSamples {
  explicit RankedSamples(const std::vector<Ranking>& rankings);

  std::vector<size_t> samples;                 // [N] places in the layout
  std::vector<double> counted;                 // [N] how much a mean over rankings counts each
  at::Tensor better, worse;                    // [P] int64 places in `samples`
  at::Tensor weights;                          // [P] 1 over the number of pairs of its ranking
  std::vector<size_t> groups;                  // [P]
  std::vector<std::vector<int64_t>> compared;  // for each sample that is better than some: itself, then these
};

/// -log of the probability that the samples come in this order if the best is drawn first, by softmax of the rewards, then the
/// best of the others, and so on (Plackett 1975; Luce 1959): the sum over the rankings. Samples of equal scores have no order:
/// each is compared with those that are worse. rewards [N]; differentiable.
at::Tensor plackett_luce_loss(const RankedSamples& ranked, const at::Tensor& rewards);

}  // namespace sluice::nodes
