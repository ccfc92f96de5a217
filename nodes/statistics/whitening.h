#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/contract.h"
#include "nodes/statistics/moments.h"

namespace sluice::nodes {

/// Over what a column is brought to zero mean and unit variance.
enum class Whitening { kNone, kIteration };

constexpr auto enum_names(Whitening) {
  return std::array{std::pair{Whitening::kNone, "none"}, std::pair{Whitening::kIteration, "iteration"}};
}

/// What every node that whitens has beside its own parameters, which derive from it:
///
///   whiten = "iteration"        # or "none"
///   whiten_variance = "bessel"  # TRL, verl, SkyRL; "biased": OpenRLHF, and NeMo-RL for REINFORCE++
///   whiten_epsilon = 1e-8       # under the root, beside the variance
///   whiten_mean = true          # false: the variance alone becomes 1 and the mean stays, as whiten_rewards of TRL
struct WhiteningParams {
  Whitening whiten = Whitening::kNone;
  Variance whiten_variance = Variance::kBessel;
  double whiten_epsilon = 1e-8;
  bool whiten_mean = true;
};

/// Declares the parameters, and that the node is a barrier when it whitens.
template <class P>
void describe_whitening(engine::Contract<P>& c);

/// Adds the entries of `parts`, weighted by `masks` (none, or one a part, where an empty one counts each entry 1). What weighs 0
/// has no part in it, even NaN.
void add_moments(const std::vector<std::span<float>>& parts, const std::vector<std::span<const float>>& masks,
                 ExactMoments& sums);

/// 1 / sqrt(variance + epsilon) of `sums`; 1 where they weigh 1 or less in all: one entry alone has no deviation.
double whitening_scale(const ExactMoments& sums, const WhiteningParams& options);

/// x := (x - mean) / sqrt(variance + epsilon), and with whiten_mean = false the mean back on top, over all entries of `parts`.
/// Mean and variance are those of `sums`, of all ranks; with Bessel's correction for a total weight above 1. A weight of 1 or
/// less in all (one entry alone) leaves the scale, and becomes 0. Entries that weigh 0 are moved like the others. A NaN that
/// counts makes every entry NaN; without any entry that counts nothing changes.
void whiten(const std::vector<std::span<float>>& parts, const ExactMoments& sums, const WhiteningParams& options = {});

/// The total that a node which whitens adds its entries to.
constexpr const char* kWhitenedTotal = "whitened";

template <class P>
void describe_whitening(engine::Contract<P>& c) {
  c.param("whiten", &P::whiten).doc("zero mean, unit variance over the iteration's actions");
  c.param("whiten_variance", &P::whiten_variance).doc("squares over n - 1 (bessel) or over n (biased)");
  c.param("whiten_epsilon", &P::whiten_epsilon).at_least(0).doc("added to the variance under the root");
  c.param("whiten_mean", &P::whiten_mean).doc("false: only the variance becomes 1, the mean stays");
  c.iteration_scope_if([](const P& p) { return p.whiten == Whitening::kIteration; }, "whiten = \"iteration\"");
  c.total_if([](const P& p) { return p.whiten == Whitening::kIteration; }, kWhitenedTotal);
  c.check([](const P& params, engine::Findings& findings) {
    for (const char* key : {"whiten_variance", "whiten_epsilon", "whiten_mean"}) {
      if (params.whiten != Whitening::kNone || !findings.changed(key)) continue;
      findings.without_effect(key, std::string(key) + " has no effect while whiten is \"none\"",
                              "whiten = \"iteration\", or remove " + std::string(key));
    }
  });
}

}  // namespace sluice::nodes
