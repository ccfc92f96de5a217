#pragma once

#include <string_view>

#include "base/problem.h"
#include "engine/contract/spec/spec.h"

namespace sluice::dsl {

/// The merged tree of keys as a pipeline. Adds problems for wrong kinds, bad names, and nodes without a type; top-level keys that
/// no pipeline has are passed over (they were reported with their file).
engine::PipelineSpec shape_pipeline(engine::Table root, Problems& problems);

/// Whether a model, a node or a role may be called so.
bool is_name(std::string_view text);

/// Something else than a table in the place of [path]. `what`: what is called so, "budget" or "node 'train'"; `below`: what
/// stands in a table of that path, where it is not plain keys.
Problem not_a_table(const engine::Entry& entry, const std::string& what, const std::string& path, const std::string& below = {});

/// Likewise, of what has a name of its own below [header]: a node, a model, a role, a device.
Problem named_not_a_table(const engine::Entry& entry, const std::string& kind, const std::string& header);

}  // namespace sluice::dsl
