#pragma once

#include <map>
#include <string>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// What all ranks of a run must have alike, by what it is called where it differs: "[pipeline] seed", "the kind of machine". All
/// that decides what the run computes, and how ranks work together; not what each may have of its own, such as cores, folders and
/// trackers. Of files that only some ranks read, such as those of data, the others have nothing to compare: an empty value.
///
/// Reads the beginning of the files of models (cli/run_folder/model_marks.h) and of those that nodes name
/// (cli/run_folder/input_marks.h), and fails as these do. Thread-safe.
std::map<std::string, std::string> what_ranks_agree_on(const engine::Plan& plan, int rank);

}  // namespace sluice::cli
