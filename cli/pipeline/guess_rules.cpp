#include "cli/pipeline/guess_rules.h"

#include <algorithm>

#include "nodes/rollout/generate.h"

namespace sluice::cli {

std::map<std::string, engine::GuessRules> guess_rules(const engine::Plan& plan) {
  std::map<std::string, engine::GuessRules> rules;
  for (const engine::PlanNode& node : plan.nodes) {
    if (node.type->info.type != "generate") continue;
    const auto& params = *static_cast<const nodes::GenerateParams*>(node.params.get());
    if (params.speculation == nodes::Speculation::kNone) continue;
    const bool alone = params.speculation == nodes::Speculation::kAuto;
    rules[node.name] = {.tokens = params.speculation_tokens, .samples = alone ? 1 : 0, .draft = params.draft};
  }
  return rules;
}

}  // namespace sluice::cli
