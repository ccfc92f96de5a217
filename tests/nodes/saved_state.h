#pragma once

#include "base/json/json.h"
#include "engine/contract/node.h"
#include "engine/contract/state.h"
#include "engine/contract/state_json.h"

namespace sluice::nodes {

/// What a checkpoint has of `node`, as it comes back from the manifest.
inline engine::NodeState state_of(const engine::NodeBase& node) {
  engine::StateWriter state;
  node.save(state);
  return engine::state_of(parse_json(engine::state_json(state.take()), "the state of a node"));
}

/// Makes a new node one that goes on from there.
inline void go_on(engine::NodeBase& node, const engine::NodeState& state) { node.load(engine::StateReader(state)); }

/// try_node() makes a node for each trial; this one hands all trials to the same node, so that its state lives on.
class ForwardTo final : public engine::Node {
 public:
  explicit ForwardTo(engine::Node& node) : node_(node) {}
  void process(engine::MicroBatch& batch) override { node_.process(batch); }
  void end_iteration(const engine::Iteration& iteration) override { node_.end_iteration(iteration); }

 private:
  engine::Node& node_;
};

}  // namespace sluice::nodes
