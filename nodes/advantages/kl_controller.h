#pragma once

#include <optional>

namespace sluice::nodes {

/// What makes the weight of the KL penalty of an iteration out of that of the one before. Stateless and immutable: the node has
/// the coefficient.
class KlController {
 public:
  static constexpr const char* kComponent = "kl_controller";

  virtual ~KlController() = default;

  /// The coefficient of the first iteration; nothing: the node's own kl_coefficient.
  virtual std::optional<double> initial() const = 0;

  /// The coefficient after an iteration of `samples` samples whose mean KL was `kl`.
  virtual double next(double coefficient, double kl, double samples) const = 0;
};

}  // namespace sluice::nodes
