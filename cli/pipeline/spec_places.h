#pragma once

#include <string>

#include "engine/contract/spec/spec.h"

namespace sluice::cli {

/// Where a node's key is written, else the header of its table.
inline SourceSpan place_in_node(const engine::PipelineSpec& spec, const std::string& node, const std::string& key) {
  for (const engine::NodeSpec& written : spec.nodes) {
    if (written.name.text != node) continue;
    const engine::Entry* entry = written.params.find(key);
    return entry != nullptr ? entry->value.where : written.name.where;
  }
  return spec.where;
}

}  // namespace sluice::cli
