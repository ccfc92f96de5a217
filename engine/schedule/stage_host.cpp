#include "engine/schedule/stage_host.h"

#include <algorithm>
#include <utility>

#include "base/error.h"

namespace sluice::engine {
namespace {

std::vector<std::string> models_that(const PlanNode& node, ModelUse use) {
  std::vector<std::string> names;
  for (const ModelNeed& need : node.needs.models) {
    if (need.use == use && std::ranges::find(names, need.model) == names.end()) names.push_back(need.model);
  }
  return names;
}

}  // namespace

int executor_index(const Plan& plan, const std::string& name) {
  const auto found = std::ranges::find(plan.executors, name, &PlanExecutor::name);
  SLUICE_CHECK(found != plan.executors.end(), "executor " + name + " is not in the plan");
  return static_cast<int>(found - plan.executors.begin());
}

StageHost::StageHost(RunState& state, int node, Workload::Part part, bool rewinds)
    : state_(state),
      index_(node),
      plan_(state.plan.nodes[static_cast<size_t>(node)]),
      executor_(executor_index(state.plan, plan_.executor)),
      part_(std::move(part)),
      updated_models_(models_that(plan_, ModelUse::kUpdates)),
      published_models_(models_that(plan_, ModelUse::kPublishes)) {
  if (!rewinds) return;
  StateWriter first;
  part_.node->save(first);
  first_state_ = first.take();
}

void StageHost::begin(const Iteration& iteration) {
  if (std::exchange(begun_, iteration.index) != iteration.index) part_.node->begin_iteration(iteration);
}

void StageHost::end(const Iteration& iteration) {
  part_.node->end_iteration(iteration);
  if (first_state_) part_.node->load(StateReader(*first_state_));
  save(iteration);
}

void StageHost::announce_end(const Iteration& iteration) {
  release_models(iteration);
  state_.pending.enter();
  const auto report = [this, index = iteration.index](Contribution of_all) {
    report_metrics(index, std::move(of_all));
    state_.pending.leave();
  };
  const Reductions::Key key{.iteration = iteration.index, .node = index_, .point = Reductions::Key::kMetrics};
  state_.reductions.combine(key, part_.metrics->contribution(), report);
}

// On any rank's thread. What goes wrong is the run's failure: a file may be full that takes the line of an iteration.
void StageHost::report_metrics(int64_t iteration, Contribution of_all) {
  const bool abandoned = state_.stopping() && state_.reductions.world().size > 1;
  if (abandoned) return;
  try {
    state_.log.node_ended(iteration, static_cast<size_t>(index_), part_.metrics->row(std::move(of_all)));
  } catch (...) {
    state_.failure.capture(WorkPlace{.node = plan_.name, .iteration = iteration});
  }
}

void StageHost::pass_over(const Iteration& iteration) {
  save(iteration);
  release_models(iteration);
  state_.log.node_ended(iteration.index, static_cast<size_t>(index_), {});
}

void StageHost::save(const Iteration& iteration) {
  if (state_.checkpointer == nullptr) return;
  state_.checkpointer->node_ended(plan_.name, iteration.index, *part_.node);
  for (const std::string& model : updated_models_) state_.checkpointer->model_updated(model, iteration.index);
}

void StageHost::release_models(const Iteration& iteration) {
  for (const std::string& model : updated_models_) state_.trained.at(model).reach(iteration.index + 1);
  for (const std::string& model : published_models_) state_.gates.at(model).publish(iteration.index + 1);
}

}  // namespace sluice::engine
