#pragma once

#include <array>
#include <utility>

#include "engine/contract/contract.h"
#include "nodes/objectives/preference/preference_objective.h"

namespace sluice::nodes {

/// What is made of the assumption that some labels are wrong.
enum class LabelNoise {
  kConservative,  // the loss that is expected when labels are flipped at random (Mitchell 2023, "cDPO", eq. 3)
  kRobust,        // an estimate of the loss without the flips (Chowdhury et al. 2024, "rDPO")
};

constexpr auto enum_names(LabelNoise) {
  return std::array{std::pair{LabelNoise::kConservative, "conservative"}, std::pair{LabelNoise::kRobust, "robust"}};
}

/// Direct preference optimisation (Rafailov et al. 2023, eq. 7): -log sigmoid(m), where m = r(chosen) - r(rejected) and r = beta
/// (log policy - log reference) of a whole sample.
///
///   objective = { type = "dpo", beta = 0.1, label_smoothing = 0.1, noise = "robust" }
///
/// With label_smoothing = e, the share of the labels that are taken to be wrong: conservative -(1 - e) log sigmoid(m) - e log
/// sigmoid(-m), robust (-(1 - e) log sigmoid(m) + e log sigmoid(-m)) / (1 - 2e). The reward of a sample is r.
struct DpoParams {
  engine::ScheduledNumber beta = 0.1;
  double label_smoothing = 0;
  LabelNoise noise = LabelNoise::kConservative;
};

class Dpo final : public PreferenceObjective {
 public:
  static void describe(engine::Contract<DpoParams>& contract);

  explicit Dpo(const DpoParams& params) : params_(params) {}

  bool reads_reference() const override { return true; }
  PreferenceTerms compute(const PreferenceInputs& inputs) const override;

 private:
  DpoParams params_;
};

}  // namespace sluice::nodes
