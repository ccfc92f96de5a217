#pragma once

#include "engine/contract/contract.h"
#include "nodes/rollout/environments/environment.h"

namespace sluice::nodes {

struct NoEnvironmentParams {};

/// The default: a response is one turn, and nobody replies.
///
///   environment = "none"
class NoEnvironment final : public Environment {
 public:
  static constexpr const char* kType = "none";

  static void describe(engine::Contract<NoEnvironmentParams>& contract);

  explicit NoEnvironment(const NoEnvironmentParams&) {}

  /// Never called; InternalError.
  Reply reply(const Turn& turn) const override;
};

}  // namespace sluice::nodes
