#include "engine/contract/spec/node_keys.h"

#include <algorithm>

namespace sluice::engine {

const std::vector<NodeKey>& node_keys() {
  static const std::vector<NodeKey> keys = {
      {.name = "type", .example = "gae", .doc = "the node type: what it reads, writes and does", .text = &NodeSpec::type},
      {.name = "inputs",
       .example = "generate",
       .doc = "the nodes that its micro-batches come from; every node but a source needs it",
       .names = &NodeSpec::inputs},
      {.name = "on",
       .example = "cpu:1",
       .doc = "its executor, such as \"cpu\", \"cpu:1\" or \"cuda:0\", or its role of [cluster.roles]",
       .text = &NodeSpec::on},
      {.name = "metrics_prefix",
       .example = "second",
       .doc = "a word in front of all its metrics",
       .text = &NodeSpec::metrics_prefix},
  };
  return keys;
}

const NodeKey* find_node_key(const std::string& name) {
  const auto found = std::ranges::find(node_keys(), name, &NodeKey::name);
  return found == node_keys().end() ? nullptr : &*found;
}

}  // namespace sluice::engine
