#include "engine/schedule/stages/flow_graph.h"

#include <oneapi/tbb/flow_graph.h>

#include <atomic>
#include <deque>
#include <optional>
#include <span>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "engine/schedule/stages/arrivals.h"
#include "engine/schedule/stages/rank_wait.h"

namespace sluice::engine {
namespace {

namespace flow = oneapi::tbb::flow;

// oneTBB runs a lightweight body on the thread that sends only if the body is noexcept; otherwise a thread of its own gets a task
// for every packet. The bodies' concurrency is unlimited, which costs no queue, because nobody sends to one node at two places at
// once: a node without join gets everything from one executor, and a join is complete for the next packet only after the thread
// that completed it for this one has sent again. What could throw here is lack of memory alone, and that ends the program.
static_assert(std::is_nothrow_default_constructible_v<Packet> && std::is_nothrow_destructible_v<Packet>);
using AsyncNode = flow::async_node<Packet, Packet, flow::queueing_lightweight>;
using JoinNode = flow::multifunction_node<Packet, std::tuple<Packet>, flow::queueing_lightweight>;

// Calls `action` once all is reached that the packet needs.
void after_all(std::span<const NodeRunner::Prerequisite> all, const Packet& packet, std::function<void()> action) {
  if (all.empty()) return action();
  all.front().milestone->when_reached(all.front().count_for(packet), [rest = all.subspan(1), packet, action = std::move(action)] {
    after_all(rest, packet, action);
  });
}

}  // namespace

/// One ordinary node in the graph.
class Stage final : public Task {
 public:
  Stage(flow::graph& graph, RunState& state, NodeRunner& runner, Executor& executor, size_t inputs)
      : state_(state),
        runner_(runner),
        executor_(executor),
        arrivals_(inputs),
        node_(graph, flow::unlimited, [this](const Packet& packet, AsyncNode::gateway_type&) noexcept { take(packet); }),
        pass_on_([this](const Packet& packet, bool last) { pass_on(packet, last); }),
        go_on_([this] { hand_over(rank_wait_.current()); }) {
    if (inputs < 2) return;
    join_.emplace(graph, flow::unlimited, [this](const Packet& packet, JoinNode::output_ports_type& out) noexcept {
      if (arrivals_.complete(packet.sequence))
        std::get<0>(out).try_put(packet);
      else
        state_.in_progress.leave();
    });
    flow::make_edge(flow::output_port<0>(*join_), node_);
  }

  flow::receiver<Packet>& input() { return join_ ? static_cast<flow::receiver<Packet>&>(*join_) : node_; }

  void add_successor(Stage& successor) {
    ++successors_;
    flow::make_edge(flow::output_port<0>(node_), successor.input());  // as a sender itself an async_node takes no successors
  }

  void run(Packet packet) override {
    if (runner_.adds_over_ranks()) return run_with_totals(packet);
    run_now(packet);
  }

  bool waits_for_weights() const { return waiting_for_version_ >= 0; }

  std::string waits_for() const {
    const PlanNode& plan = state_.plan.nodes[static_cast<size_t>(runner_.node())];
    if (const int64_t iteration = rank_wait_.iteration(); iteration >= 0)
      return "what the other ranks add in iteration " + std::to_string(iteration);
    if (const int64_t version = waiting_for_version_; version >= 0) {
      return "the weights that iteration " + std::to_string(version) + " is to see";
    }
    if (!arrivals_.any()) return {};
    std::vector<std::string> names;
    for (const int input : plan.inputs) names.push_back("'" + state_.plan.nodes[static_cast<size_t>(input)].name + "'");
    return "the same micro-batch from all of " + join(names, ", ");
  }

 private:
  // False: it waits for other ranks, and still counts as pending.
  bool run_now(Packet& packet) {
    counted_ = true;
    if (!runner_.run(packet, pass_on_, go_on_)) return false;
    if (counted_) state_.in_progress.leave();
    return true;
  }

  void run_with_totals(Packet& packet) {
    if (!rank_wait_.enter(packet)) return state_.activity.end_unseen(runner_.executor());
    if (!run_now(packet)) return;
    for (const Packet& aside : rank_wait_.leave()) hand_over(aside);
  }

  void take(const Packet& packet) {
    state_.traffic.arrived(runner_.node());
    if (runner_.prerequisites().empty()) return hand_over(packet);
    waiting_for_version_ = packet.iteration.index;
    after_all(runner_.prerequisites(), packet, [this, packet] {
      waiting_for_version_ = -1;
      hand_over(packet);
    });
  }

  // The first successor of what leaves last is counted as the packet at hand was, which saves both leaving and entering.
  void pass_on(const Packet& packet, bool last) {
    if (successors_ == 0) return;
    const int64_t inherits = last ? 1 : 0;
    if (last) counted_ = false;
    if (successors_ > inherits) state_.in_progress.enter(successors_ - inherits);
    node_.gateway().try_put(packet);
  }

  // What an executor does not take is lost, and the run with it.
  void hand_over(const Packet& packet) noexcept {
    try {
      executor_.submit({.node = runner_.node(), .task = this, .packet = packet});
    } catch (...) {
      state_.failure.capture("executor '" + state_.plan.nodes[static_cast<size_t>(runner_.node())].executor + "'");
      state_.in_progress.leave();
    }
  }

  RunState& state_;
  NodeRunner& runner_;
  Executor& executor_;
  Arrivals arrivals_;
  RankWait rank_wait_;
  int64_t successors_ = 0;
  bool counted_ = false;  // the packet at hand still counts as pending; used by the executor only
  std::atomic<int64_t> waiting_for_version_{-1};
  AsyncNode node_;
  std::optional<JoinNode> join_;
  const NodeRunner::PassOn pass_on_;
  const std::function<void()> go_on_;
};

struct FlowGraph::Impl {
  explicit Impl(RunState& state_) : state(state_) {}

  RunState& state;
  flow::graph graph;
  struct Head {
    explicit Head(flow::graph& graph) : node(graph) {}
    flow::broadcast_node<Packet> node;
    int64_t successors = 0;
  };
  std::deque<Head> heads;                      // by index of Plan::paths
  std::vector<std::unique_ptr<Stage>> stages;  // by index of Plan::nodes
};

FlowGraph::FlowGraph(RunState& state, const std::vector<std::unique_ptr<NodeRunner>>& runners,
                     const std::vector<Executor*>& executors)
    : impl_(std::make_unique<Impl>(state)) {
  const Plan& plan = state.plan;
  impl_->stages.resize(plan.nodes.size());
  for (size_t path = 0; path < plan.paths.size(); ++path) impl_->heads.emplace_back(impl_->graph);
  for (size_t i = 0; i < plan.nodes.size(); ++i) {
    if (runners[i] == nullptr) continue;
    NodeRunner& runner = *runners[i];
    Executor& executor = *executors[static_cast<size_t>(runner.executor())];
    const std::vector<int>& inputs = plan.nodes[i].inputs;
    impl_->stages[i] = std::make_unique<Stage>(impl_->graph, state, runner, executor, inputs.size());
    for (const int input : inputs) {
      Stage* const before = impl_->stages[static_cast<size_t>(input)].get();
      if (before != nullptr) {
        before->add_successor(*impl_->stages[i]);
      } else {
        Impl::Head& head = impl_->heads[static_cast<size_t>(plan.nodes[i].path)];
        ++head.successors;
        flow::make_edge(head.node, impl_->stages[i]->input());
      }
    }
  }
}

FlowGraph::~FlowGraph() { impl_->graph.wait_for_all(); }

void FlowGraph::emit(int path, Packet packet) {
  Impl::Head& head = impl_->heads[static_cast<size_t>(path)];
  impl_->state.in_progress.enter(head.successors);
  head.node.try_put(packet);
}

bool FlowGraph::waits_for_weights(int node) const {
  const Stage* stage = impl_->stages[static_cast<size_t>(node)].get();
  return stage != nullptr && stage->waits_for_weights();
}

std::string FlowGraph::waits_for(int node) const {
  const Stage* stage = impl_->stages[static_cast<size_t>(node)].get();
  return stage == nullptr ? std::string() : stage->waits_for();
}

}  // namespace sluice::engine
