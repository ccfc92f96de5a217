#pragma once

#include <array>

/// Names of what `train_ppo` adds up over all ranks (engine::Totals).
namespace sluice::nodes::train_ppo {

// What is told of the routers of a critic that is another model.
inline constexpr const char* kCriticRouter = "value_router";

// What the gradients of a step are sums over, and the advantages of a mini-batch that are whitened.
inline constexpr const char *kActorCount = "policy_count", *kCriticCount = "value_count", *kAdvantageTotal = "advantages";

// What an objective adds up in a look: the moments, and beside the first of them the counts.
inline constexpr std::array<const char*, 2> kLookTotals{"look", "look_second"};

}  // namespace sluice::nodes::train_ppo
