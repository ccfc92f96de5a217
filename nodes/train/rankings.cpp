#include "nodes/train/rankings.h"

#include <ATen/ops/logsumexp.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <numeric>

#include "nodes/forward/ragged.h"
#include "nodes/train/sample_pairs.h"

namespace sluice::nodes {
namespace {

using engine::Layout;
using engine::Range;

Ranking of_pair(const SamplePair& pair) {
  const bool chosen_first = pair.chosen < pair.rejected;
  return {.group = pair.group,
          .samples = {std::min(pair.chosen, pair.rejected), std::max(pair.chosen, pair.rejected)},
          .pairs = {{.better = chosen_first ? size_t{0} : size_t{1}, .worse = chosen_first ? size_t{1} : size_t{0}}}};
}

Ranking of_all(size_t group, std::vector<size_t> samples, std::span<const float> scores) {
  Ranking ranking{.group = group, .samples = std::move(samples), .pairs = {}};
  for (size_t a = 0; a < ranking.samples.size(); ++a) {
    for (size_t b = 0; b < ranking.samples.size(); ++b) {
      if (scores[ranking.samples[a]] > scores[ranking.samples[b]]) ranking.pairs.push_back({a, b});
    }
  }
  return ranking;
}

std::vector<size_t> counted(const Layout& layout, std::span<const float> mask, Range samples) {
  std::vector<size_t> all(samples.size());
  std::iota(all.begin(), all.end(), samples.begin);
  return mask.empty() ? all : samples_that_count(layout, mask, all);
}

}  // namespace

std::vector<Ranking> rankings_by_score(const Layout& layout, std::span<const float> scores, std::span<const float> mask,
                                       Comparison comparison) {
  const std::vector<Range> samples = layout.samples_by_group();
  const std::vector<SamplePair> pairs = mask.empty() ? pairs_by_score(layout, scores) : pairs_with_actions(layout, scores, mask);
  std::vector<Ranking> rankings;
  for (const SamplePair& pair : pairs) {
    rankings.push_back(comparison == Comparison::kBestAndWorst
                           ? of_pair(pair)
                           : of_all(pair.group, counted(layout, mask, samples[pair.group]), scores));
  }
  return rankings;
}

UnitPasses<Ranking> passes_of_rankings(const Layout& layout, const std::vector<Ranking>& rankings, int64_t limit) {
  std::vector<int64_t> tokens;  // of all samples of each
  for (const Ranking& ranking : rankings) {
    int64_t& all = tokens.emplace_back(0);
    for (const size_t sample : ranking.samples) all += layout.token_offsets[sample + 1] - layout.token_offsets[sample];
  }
  return passes_of_units(rankings, tokens, limit);
}

RankedSamples::RankedSamples(const std::vector<Ranking>& rankings) {
  std::vector<int64_t> of_better, of_worse;
  std::vector<float> of_pairs;
  for (const Ranking& ranking : rankings) {
    const size_t first = samples.size();
    samples.insert(samples.end(), ranking.samples.begin(), ranking.samples.end());
    counted.insert(counted.end(), ranking.samples.size(), 1 / static_cast<double>(ranking.samples.size()));
    std::vector<std::vector<int64_t>> worse_than(ranking.samples.size());
    for (const Ranking::Pair& pair : ranking.pairs) {
      of_better.push_back(static_cast<int64_t>(first + pair.better));
      of_worse.push_back(static_cast<int64_t>(first + pair.worse));
      of_pairs.push_back(1 / static_cast<float>(ranking.pairs.size()));
      groups.push_back(ranking.group);
      auto& with = worse_than[pair.better];
      if (with.empty()) with.push_back(of_better.back());
      with.push_back(of_worse.back());
    }
    for (auto& with : worse_than)
      if (!with.empty()) compared.push_back(std::move(with));
  }
  better = places_tensor(of_better);
  worse = places_tensor(of_worse);
  weights = action_tensor(of_pairs).clone();
}

at::Tensor plackett_luce_loss(const RankedSamples& ranked, const at::Tensor& rewards) {
  at::Tensor loss = at::zeros({}, rewards.options());
  for (const std::vector<int64_t>& with : ranked.compared) {
    const at::Tensor of_both = rewards.index_select(0, places_tensor(with));  // the better one first
    loss = loss.add(at::logsumexp(of_both, 0)).sub(of_both.select(0, 0));
  }
  return loss;
}

}  // namespace sluice::nodes
