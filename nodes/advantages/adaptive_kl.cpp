#include "nodes/advantages/adaptive_kl.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace sluice::nodes {

void AdaptiveKl::describe(engine::Contract<AdaptiveKlParams>& c) {
  using P = AdaptiveKlParams;
  c.type("adaptive_kl", "raises the coefficient while the KL is above a target, and lowers it below");
  c.param("initial", &P::initial).above(0).doc("coefficient of the first iteration");
  c.param("target", &P::target).above(0).unit("nats").doc("mean KL that it steers towards, measured as kl_measure says");
  c.param("horizon", &P::horizon)
      .above(0)
      .unit("samples")
      .doc("samples over which an error of 0.2 changes the coefficient by 20 %");
}

double AdaptiveKl::next(double coefficient, double kl, double samples) const {
  if (!std::isfinite(kl)) {
    throw UserError("the mean KL of the iteration is not finite: the coefficient of the penalty cannot follow it",
                    "clamp_input bounds the log ratio of an action");
  }
  const double error = std::clamp(kl / params_.target - 1, -0.2, 0.2);
  const double factor = 1 + error * samples / params_.horizon;
  if (factor <= 0)
    throw UserError("the iteration has too many samples for horizon: the coefficient of the KL penalty would not stay positive",
                    "a horizon of several iterations' samples");
  return coefficient * factor;
}

}  // namespace sluice::nodes
