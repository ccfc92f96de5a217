#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/spec/spec.h"
#include "engine/plan/plan.h"

namespace sluice::cli {

/// A change of a pipeline after which it may take less memory.
struct Remedy {
  std::string name;                           // "lora in [models.actor]"
  std::vector<std::string> sets;              // KEY=VALUE, as for --set
  std::string costs;                          // what is given up for it
  std::optional<size_t> with;                 // only together with that remedy, by index
  std::vector<std::string> in_place_of = {};  // "models.reference.": what others set of these does not count any more
};

/// What some of them set together.
std::vector<std::string> sets_together(const std::vector<const Remedy*>& remedies);

/// Those that a pipeline does not have yet, of plan and file. Whether they go with the rest of it, its check says. Tokens in
/// flight are not among them: how many fit depends on the others.
std::vector<Remedy> remedies_for(const engine::Plan& plan, const engine::PipelineSpec& spec);

}  // namespace sluice::cli
