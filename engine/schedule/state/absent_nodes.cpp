#include "engine/schedule/state/absent_nodes.h"

#include "base/error.h"

namespace sluice::engine {
namespace {

[[noreturn]] void refuse_work() { throw InternalError("a node is given work on a rank that does not have it"); }

class AbsentNode final : public Node {
 public:
  void process(MicroBatch&) override { refuse_work(); }
};

// Its groups are made by others, whose worst is what the plan was proven for.
class AbsentRollout final : public Rollout {
 public:
  explicit AbsentRollout(int64_t worst_tokens) : worst_tokens_(worst_tokens) {}

  int64_t worst_tokens(const Group&) const override { return worst_tokens_; }
  void start(Group) override { refuse_work(); }
  void step(Sink&) override { refuse_work(); }
  bool idle() const override { return true; }

 private:
  const int64_t worst_tokens_;
};

}  // namespace

std::unique_ptr<NodeBase> absent_node(const Plan& plan, int node) {
  if (plan.nodes[static_cast<size_t>(node)].type->kind != NodeKind::kRollout) return std::make_unique<AbsentNode>();
  return std::make_unique<AbsentRollout>(plan.path_of(node).capacity.group_tokens);
}

}  // namespace sluice::engine
