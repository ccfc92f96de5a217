#include "engine/flow_graph.h"

#include <oneapi/tbb/flow_graph.h>
#include <oneapi/tbb/global_control.h>

#include <map>
#include <span>
#include <tuple>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

namespace flow = oneapi::tbb::flow;

using AsyncNode = flow::async_node<Packet, Packet>;
using JoinNode = flow::multifunction_node<Packet, std::tuple<Packet>>;

// Lets a packet through once it has arrived from all inputs. Branches share the micro-batch, so there is nothing to merge.
class Join {
 public:
  explicit Join(size_t inputs) : inputs_(inputs) {}

  void operator()(const Packet& packet, JoinNode::output_ports_type& out) {
    if (++arrived_[packet.sequence] < inputs_) return;
    arrived_.erase(packet.sequence);
    std::get<0>(out).try_put(packet);
  }

 private:
  size_t inputs_;
  std::map<int64_t, size_t> arrived_;
};

// Calls `action` once every milestone has reached `count`.
void after_all(std::span<Milestone* const> milestones, int64_t count, std::function<void()> action) {
  if (milestones.empty()) return action();
  milestones.front()->when_reached(count, [rest = milestones.subspan(1), count, action = std::move(action)] { after_all(rest, count, action); });
}

}  // namespace

struct FlowGraph::Impl {
  // Forwarding is a few hundred nanoseconds a packet; the work is done by the executors.
  oneapi::tbb::global_control two_threads{oneapi::tbb::global_control::max_allowed_parallelism, 2};
  flow::graph graph;
  flow::broadcast_node<Packet> head{graph};
  std::vector<std::unique_ptr<AsyncNode>> nodes;
  std::vector<std::unique_ptr<JoinNode>> joins;

  flow::sender<Packet>& output_of(const Plan& plan, int node) {
    if (plan.nodes[static_cast<size_t>(node)].type->kind != NodeKind::kOrdinary) return head;
    return flow::output_port<0>(*nodes[static_cast<size_t>(node)]);  // as a sender itself an async_node takes no successors
  }
};

FlowGraph::FlowGraph(const Plan& plan, const std::vector<std::unique_ptr<NodeRunner>>& runners,
                     const std::vector<std::unique_ptr<Executor>>& executors)
    : impl_(std::make_unique<Impl>()) {
  impl_->nodes.resize(plan.nodes.size());
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    NodeRunner* const runner = runners[i].get();
    if (runner == nullptr) continue;
    Executor* const executor = executors[static_cast<size_t>(runner->executor())].get();
    const int rank = static_cast<int>(i);
    impl_->nodes[i] = std::make_unique<AsyncNode>(impl_->graph, flow::serial, [=](const Packet& packet, AsyncNode::gateway_type& out) {
      out.reserve_wait();
      const auto hand_over = [=, &out] {
        executor->submit(rank, packet.sequence, [=, &out] {
          runner->run(packet, [&out](Packet leaving) { out.try_put(std::move(leaving)); });
          out.release_wait();
        });
      };
      after_all(runner->prerequisites(), packet.iteration.index, hand_over);
    });
    const std::vector<int>& inputs = plan.nodes[i].inputs;
    flow::receiver<Packet>* entry = impl_->nodes[i].get();
    if (inputs.size() > 1) {
      impl_->joins.push_back(std::make_unique<JoinNode>(impl_->graph, flow::serial, Join(inputs.size())));
      flow::make_edge(flow::output_port<0>(*impl_->joins.back()), *impl_->nodes[i]);
      entry = impl_->joins.back().get();
    }
    for (const int input : inputs) flow::make_edge(impl_->output_of(plan, input), *entry);
  }
}

FlowGraph::~FlowGraph() = default;

void FlowGraph::emit(Packet packet) { impl_->head.try_put(std::move(packet)); }
void FlowGraph::reserve() { impl_->graph.reserve_wait(); }
void FlowGraph::release() { impl_->graph.release_wait(); }
void FlowGraph::wait() { impl_->graph.wait_for_all(); }

}  // namespace sluice::engine
