#pragma once

#include "engine/contract/contract.h"
#include "nodes/advantages/kl_controller.h"

namespace sluice::nodes {

/// The coefficient stays what kl_coefficient says.
///
///   kl_controller = "fixed_kl"
struct FixedKlParams {};

class FixedKl final : public KlController {
 public:
  static void describe(engine::Contract<FixedKlParams>& c) { c.type("fixed_kl", "kl_coefficient, all along"); }

  explicit FixedKl(const FixedKlParams&) {}

  std::optional<double> initial() const override { return std::nullopt; }
  double next(double coefficient, double, double) const override { return coefficient; }
};

}  // namespace sluice::nodes
