#pragma once

#include <map>
#include <string>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// What all ranks of a run must have alike, by what it is called where it differs: "[pipeline] seed", "the kind of machine". All that
/// decides what the run computes, and how ranks work together; not what each may have of its own, such as cores, folders and trackers.
/// Reads the beginning of the files of models (cli/model_marks.h), and fails as that does. Thread-safe.
std::map<std::string, std::string> what_ranks_agree_on(const engine::Plan& plan);

}  // namespace sluice::cli
