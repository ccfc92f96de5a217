#include "engine/node_runner.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

namespace {

bool is_published(const Plan& plan, const std::string& model) {
  return std::ranges::any_of(plan.nodes, [&](const PlanNode& node) {
    return std::ranges::any_of(node.needs.models, [&](const ModelNeed& need) { return need.use == ModelUse::kPublishes && need.model == model; });
  });
}

}  // namespace

std::vector<int> ordinary_readers(const Plan& plan) {
  std::vector<int> readers;
  for (const PlanColumn& column : plan.columns) {
    readers.push_back(static_cast<int>(std::ranges::count_if(column.readers, [&](int node) {
      return plan.nodes[static_cast<size_t>(node)].type->kind == NodeKind::kOrdinary;
    })));
  }
  return readers;
}

int executor_index(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.executors, name, &PlanExecutor::name);
  SLUICE_CHECK(found != plan.executors.end(), "executor " + name + " is not in the plan");
  return static_cast<int>(found - plan.executors.begin());
}

NodeRunner::NodeRunner(RunState& state, int node, std::unique_ptr<Node> implementation, std::unique_ptr<MetricsRecorder> metrics,
                       Reducer& reducer)
    : state_(state),
      index_(node),
      plan_(state.plan.nodes[static_cast<size_t>(node)]),
      metrics_(std::move(metrics)),
      node_(std::move(implementation)),
      reducer_(reducer),
      executor_(executor_index(state.plan, plan_.executor)) {
  const std::vector<int> readers = ordinary_readers(state.plan);
  for (const int column : plan_.writes) readers_.push_back(readers[static_cast<size_t>(column)]);
  for (const ModelNeed& need : plan_.needs.models) {
    if (need.use == ModelUse::kPublishes) publishes_ = true;
    if (need.use == ModelUse::kReads && state.trained.contains(need.model)) prerequisites_.push_back(&state.trained.at(need.model));
    if (need.use != ModelUse::kUpdates) continue;
    class_ = WorkClass::kTrain;
    updated_models_.push_back(need.model);
    if (is_published(state.plan, need.model)) prerequisites_.push_back(&state.gate.published());
  }
  std::ranges::sort(prerequisites_, std::less<>());  // one order for all nodes: a milestone's actions ask the next one under its lock
}

void NodeRunner::run(Packet packet, const std::function<void(Packet)>& pass_on) {
  if (state_.stopping()) return;
  try {
    begin(packet.iteration);
    if (packet.batch == nullptr) {
      process_held(packet.iteration);
      end(packet.iteration);
      for (const Packet& batch : std::exchange(held_, {})) pass_on(batch);
      pass_on(std::move(packet));
    } else if (plan_.needs.scope == Scope::kIteration) {
      held_.push_back(std::move(packet));
    } else {
      process_one(packet);
      pass_on(std::move(packet));
    }
  } catch (...) {
    state_.failure.capture(place(packet));
  }
}

void NodeRunner::begin(const Iteration& iteration) {
  if (begun_ == iteration.index) return;
  begun_ = iteration.index;
  node_->begin_iteration(iteration);
}

void NodeRunner::process_one(const Packet& packet) {
  const Activity::Scope busy(state_.activity, class_,
                             {.executor = executor_,
                              .node = plan_.name,
                              .iteration = packet.iteration.index,
                              .micro_batch = packet.batch->id,
                              .tokens = static_cast<int64_t>(packet.batch->layout.tokens())});
  MicroBatch batch = view(packet);
  node_->process(batch);
  settle(batch);
}

void NodeRunner::process_held(const Iteration& iteration) {
  if (held_.empty()) return;
  std::vector<MicroBatch> batches;
  int64_t tokens = 0;
  for (const Packet& packet : held_) {
    batches.push_back(view(packet));
    tokens += static_cast<int64_t>(packet.batch->layout.tokens());
  }
  const Activity::Scope busy(state_.activity, class_,
                             {.executor = executor_, .node = plan_.name, .iteration = iteration.index, .tokens = tokens});
  node_->process_iteration(batches);
  for (MicroBatch& batch : batches) settle(batch);
}

void NodeRunner::end(const Iteration& iteration) {
  {
    const Activity::Scope busy(state_.activity, class_, {.executor = executor_, .node = plan_.name, .iteration = iteration.index});
    node_->end_iteration(iteration);
    for (const std::string& model : updated_models_) state_.checkpointer.model_updated(model, iteration.index);
  }
  for (const std::string& model : updated_models_) state_.trained.at(model).reach(iteration.index + 1);
  if (publishes_) state_.gate.publish(iteration.index + 1);
  state_.log.node_ended(iteration.index, static_cast<size_t>(index_), metrics_->take(reducer_));
}

// What the node wrote is sealed; what it read has one reader less; if it was the last reader of all, the tokens' credit returns.
void NodeRunner::settle(MicroBatch& batch) {
  BatchState& state = *batch.state();
  for (size_t i = 0; i < plan_.writes.size(); ++i) {
    const auto slot = static_cast<size_t>(plan_.writes[i]);
    const ColumnData& data = batch.written_columns()[i];
    SLUICE_CHECK(!data.empty(), "the node did not write " + state_.slots[slot].name + ", which its contract promises");
    state.store(slot, data, readers_[i]);
  }
  for (const int column : plan_.reads) state.release_one_reader(static_cast<size_t>(column));
  if (plan_.reads.empty()) return;
  if (state.token_readers_left.fetch_sub(1) == 1) state_.budget.release(std::exchange(state.credit, 0));
}

WorkPlace NodeRunner::place(const Packet& packet) const {
  WorkPlace place{.node = plan_.name, .iteration = packet.iteration.index};
  if (packet.batch != nullptr) {
    place.micro_batch = packet.batch->id;
    place.first_group = packet.batch->first_group;
    place.groups = static_cast<int64_t>(packet.batch->layout.groups());
  }
  return place;
}

}  // namespace sluice::engine
