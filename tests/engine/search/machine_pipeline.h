#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/check/check.h"
#include "engine/contract/registry.h"
#include "engine/plan/plan.h"
#include "tests/engine/search/capacity_machine.h"

namespace sluice::engine::testing {

/// Node types that do nothing: they declare what a machine has.
void add_machine_types(Registry& registry);

/// What `check` says of the pipeline that the machine is. `shares` are tokens, by path; at most one path has no own_share.
CheckResult check_machine(const Paths& paths, const std::vector<int>& shares, const Registry& registry);

/// The node of a plan that is a step of a path.
const PlanNode& node_of_step(const Plan& plan, size_t path, size_t step);

}  // namespace sluice::engine::testing
