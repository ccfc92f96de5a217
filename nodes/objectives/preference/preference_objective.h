#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace sluice::nodes {

/// P samples as wholes. All of one floating type, on one device.
struct SequenceLogprobs {
  at::Tensor policy;     // [P] log-probability of all actions of a sample together; carries the gradient
  at::Tensor reference;  // [P] the same under the reference; constant; undefined unless the objective reads it
  at::Tensor lengths;    // [P] actions of the sample, above 0; constant
};

/// P pairs: the better sample of each, and the worse one.
struct PreferenceInputs {
  SequenceLogprobs chosen;
  SequenceLogprobs rejected;
  int64_t iteration = 0;  // that the pairs belong to: where scheduled numbers stand
};

/// What an objective makes of P pairs.
struct PreferenceTerms {
  at::Tensor losses;            // [P] differentiable
  at::Tensor chosen_rewards;    // [P] what the policy implicitly takes each sample to be worth; no gradient
  at::Tensor rejected_rewards;  // [P]
};

/// A differentiable loss on pairs of samples, apart from the node that makes the optimizer step. Each pair has its own loss, so
/// that nothing depends on how pairs are packed into micro-batches. Stateless and immutable: const use from any thread.
class PreferenceObjective {
 public:
  static constexpr const char* kComponent = "preference_objective";

  virtual ~PreferenceObjective() = default;

  virtual bool reads_reference() const = 0;
  virtual PreferenceTerms compute(const PreferenceInputs& inputs) const = 0;
};

/// Means over the pairs, ready to be combined with the number of pairs as weight. At least one pair.
std::vector<std::pair<std::string, double>> preference_metrics(const PreferenceInputs& inputs, const PreferenceTerms& terms);

}  // namespace sluice::nodes
