#pragma once

#include <string>

#include "engine/contract/contract.h"
#include "nodes/rollout/environments/environment.h"

namespace sluice::nodes {

/// A calculator that the policy calls in its text: exact arithmetic of whole numbers (arithmetic.h).
///
///   environment = { type = "calculator", open = "<calc>", close = "</calc>", prefix = "", suffix = "" }
///
/// A turn that ends with `close` is a call. What lies between the last `open` and it is evaluated, and the reply is the value, or
/// "error", between `prefix` and `suffix`. With open = "" the expression is all of arithmetic that stands in front of `close`:
/// close = "=" makes "so 12*30=" a call. A turn that ends in any other way is the policy's answer: the sample is done. `close`
/// ends turns by itself, it need not be in turn_ends.
struct CalculatorParams {
  std::string open = "<calc>";
  std::string close = "</calc>";
  std::string prefix;
  std::string suffix;
};

class Calculator final : public Environment {
 public:
  static void describe(engine::Contract<CalculatorParams>& contract);

  explicit Calculator(const CalculatorParams& params) : params_(params) {}

  Reply reply(const Turn& turn) const override;
  std::vector<std::string> turn_ends() const override { return {params_.close}; }

 private:
  CalculatorParams params_;
};

}  // namespace sluice::nodes
