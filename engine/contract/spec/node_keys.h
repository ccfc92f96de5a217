#pragma once

#include <string>
#include <vector>

#include "engine/contract/spec/spec.h"

namespace sluice::engine {

/// A key that the pipeline language itself gives to every node, whatever its type. What reads the file, the check that no type
/// takes such a key, and the schema of pipeline files are made of these. One of `text` and `names` says where it goes.
struct NodeKey {
  std::string name;
  std::string example;  // of a value, or of an element
  std::string doc;
  Name NodeSpec::*text = nullptr;
  std::vector<Name> NodeSpec::*names = nullptr;
};

/// In the order in which they are written.
const std::vector<NodeKey>& node_keys();

/// Null: the key is one of the node's type.
const NodeKey* find_node_key(const std::string& name);

}  // namespace sluice::engine
