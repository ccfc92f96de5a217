#pragma once

#include <string>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// What each rank has to do and what goes between them, for plan_text(). A few lines; nothing where one rank has one slot.
std::string ranks_lines(const Plan& plan);

/// "0-3", of the run; "2" of one.
std::string rank_numbers(const Plan& plan, const PlanRole& role);

/// Where a node runs: its executor; with roles a source whose groups a rollout makes draws them on every rank.
std::string place_text(const Plan& plan, const PlanNode& node);

/// Whether groups go from rank to rank on an edge: their prompts to those that sample, and back what was made of them; or what
/// ranks of a role of its own need for a node's passes, and their answers.
bool is_remote(const Plan& plan, const PlanEdge& edge);

/// How many groups of the worst size a rank that samples can make at a time. With roles, of a path with a rollout.
int64_t groups_at_once(const Plan& plan, const PlanPath& path);

}  // namespace sluice::engine
