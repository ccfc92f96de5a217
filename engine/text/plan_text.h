#pragma once

#include <string>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// What a person needs before spending a night of GPU time: the nodes in order, memory, overlap, and why it cannot stall.
std::string plan_text(const Plan& plan);

/// The same for programs: nodes, executors, edges, columns, models, predicted bytes, capacity. Indented JSON.
std::string plan_json(const Plan& plan);

/// The effective pipeline as TOML: every key with its value, and where it came from in a comment. Reads back as the same
/// pipeline, from any folder.
std::string config_text(const Plan& plan);

}  // namespace sluice::engine
