#pragma once

#include <map>
#include <string>

#include "engine/contract/registry.h"

namespace sluice::engine::testing {

/// Node types with the contracts of an RLHF pipeline and no work to do, for the tests of checks, plan and texts:
/// prompts, samples (a source that makes samples itself), generate, exact_match, group_score, logprobs, values, token_rewards,
/// gae, grpo, train_ppo (with an objective), sync_weights. Models are 1000 weights; nothing is read from their folders.
void add_toy_nodes(Registry& registry);

/// The PPO pipeline of the design document, in terms of the toy nodes.
std::string ppo_text();

/// It with the tables of `roles`, and nodes that say `on`; nothing: they do not.
std::string ppo_on_roles_text(const std::string& roles, const std::map<std::string, std::string>& on);

/// For that: what samples is on role rollout, and all else on train.
inline const std::map<std::string, std::string> kOnRoles{{"generate", "rollout"}, {"score", "train"},   {"reference", "train"},
                                                         {"values", "train"},     {"rewards", "train"}, {"advantages", "train"},
                                                         {"train", "train"},      {"sync", "train"}};

/// `text` with `from`, which must occur, replaced by `to`.
std::string edited(std::string text, const std::string& from, const std::string& to);

}  // namespace sluice::engine::testing
