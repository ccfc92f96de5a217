#pragma once

#include <vector>

#include "engine/plan/plan.h"

namespace sluice::cli {

/// A pipeline.toml of a run folder has each value with its origin as a comment. For keys that were read from such a file the
/// origin becomes that of the comment: the file that the user wrote, also after any number of resumes. Other keys, and those of
/// a file that cannot be read, stay as they are. For messages and `plan --config` only.
void keep_recorded_origins(std::vector<engine::EffectiveKey>& keys);

}  // namespace sluice::cli
