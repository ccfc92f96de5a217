#pragma once

#include <string_view>

#include "base/problem.h"
#include "engine/contract/spec.h"

namespace sluice::dsl {

/// The merged tree of keys as a pipeline. Adds problems for wrong kinds, bad names, and nodes without a type; top-level keys that
/// no pipeline has are passed over (they were reported with their file).
engine::PipelineSpec shape_pipeline(engine::Table root, Problems& problems);

/// Whether a model, a node or a role may be called so.
bool is_name(std::string_view text);

}  // namespace sluice::dsl
