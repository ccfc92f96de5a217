#pragma once

#include <map>
#include <string>

#include "engine/plan/plan.h"
#include "engine/simulation/guesses.h"

namespace sluice::cli {

/// What the nodes of a plan that guess tokens before they sample them (`speculation` of `generate`) say of it, by name.
std::map<std::string, engine::GuessRules> guess_rules(const engine::Plan& plan);

}  // namespace sluice::cli
