#pragma once

#include "engine/contract/contract.h"
#include "nodes/advantages/kl_controller.h"

namespace sluice::nodes {

/// Steers the KL towards a target: more of it than that raises the coefficient, less lowers it (Ziegler et al. 2019, "Fine-Tuning
/// Language Models from Human Preferences", section 2.2).
///
///   error = clamp(kl / target - 1, -0.2, 0.2)
///   coefficient := coefficient * (1 + error * samples / horizon)
///
///   kl_controller = { type = "adaptive_kl", initial = 0.2, target = 6.0, horizon = 10000.0 }
///
/// An iteration of 5 x horizon samples or more can take the coefficient to 0 or below, which is a UserError.
struct AdaptiveKlParams {
  double initial = 0.2;
  double target = 6;
  double horizon = 10000;
};

class AdaptiveKl final : public KlController {
 public:
  static void describe(engine::Contract<AdaptiveKlParams>& contract);

  explicit AdaptiveKl(const AdaptiveKlParams& params) : params_(params) {}

  std::optional<double> initial() const override { return params_.initial; }
  double next(double coefficient, double kl, double samples) const override;

 private:
  AdaptiveKlParams params_;
};

}  // namespace sluice::nodes
