#include "engine/schedule/stages/stage_host.h"

#include <algorithm>
#include <initializer_list>
#include <utility>

#include "base/error.h"
#include "base/numbers/crc32c.h"
#include "engine/contract/state_json.h"
#include "engine/schedule/help/samplers_there.h"

namespace sluice::engine {
namespace {

// Those of the first use first.
std::vector<std::string> models_that(const PlanNode& node, std::initializer_list<ModelUse> uses) {
  std::vector<std::string> names;
  for (const ModelUse use : uses) {
    for (const ModelNeed& need : node.needs.models) {
      if (need.use == use && std::ranges::find(names, need.model) == names.end()) names.push_back(need.model);
    }
  }
  return names;
}

// What a rank that was interrupted adds under this name to the metrics of the main path's source.
constexpr const char* kAskedToEnd = "asked to end";

// What a node keeps, as a number. Files are of rank 0 alone.
double digest_of(const NodeBase& node) {
  StateWriter writer;
  node.save(writer);
  NodeState state = writer.take();
  state.files.clear();
  return crc32c(state_json(state));
}

}  // namespace

int executor_index(const Plan& plan, const std::string& name) {
  return static_cast<int>(&plan.executor(name) - plan.executors.data());
}

StageHost::StageHost(RunState& state, int node, Workload::Part part, bool rewinds)
    : state_(state),
      index_(node),
      plan_(state.plan.nodes[static_cast<size_t>(node)]),
      executor_(executor_index(state.plan, plan_.executor)),
      part_(std::move(part)),
      is_absent_(!state.plan.has(state.world.rank, node)),
      updated_models_(models_that(plan_, {ModelUse::kUpdates, ModelUse::kAverages})),
      published_models_(models_that(plan_, {ModelUse::kPublishes})) {
  compare_states(state.log.reported() - 1);
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
}

void StageHost::announce_end(const Iteration& iteration) {
  release_models(iteration);
  state_.in_progress.enter();
  record_schedules(iteration.index);
  Contribution mine = part_.metrics->contribution();
  if (speaks_for_rank()) {
    mine.push_back(sum_part(kAskedToEnd, state_.asked_to_end ? 1 : 0));
    if (state_.samplers != nullptr) state_.samplers->name_those_who_wait(iteration.index, mine);
  }
  if (state_.roll_call && plan_.type->kind == NodeKind::kRollout)
    add_what_samplers_tell(iteration.index, std::move(mine));
  else
    combine_metrics(iteration.index, std::move(mine));
  state_.own_ends.node_ended(iteration.index);
}

// What scheduled parameters were in the iteration: of every rank the same.
void StageHost::record_schedules(int64_t iteration) {
  for (const NamedSchedule& schedule : plan_.needs.schedules) {
    if (!schedule.metric.empty() && schedule.number.changes())
      part_.metrics->value(schedule.metric, schedule.number.at(iteration));
  }
}

// What they have recorded of the iteration beside groups.
void StageHost::add_what_samplers_tell(int64_t iteration, Contribution mine) {
  state_.roll_call->when_told(iteration, /*is_last=*/false, [this, iteration, mine](const RollCall::Told& told) {
    Contribution all = mine;
    if (const auto found = told.of_rollouts.find(index_); found != told.of_rollouts.end()) add_contribution(all, found->second);
    combine_metrics(iteration, std::move(all));
  });
}

void StageHost::combine_metrics(int64_t iteration, Contribution mine) {
  const Reductions::Key key{.iteration = iteration, .node = index_, .point = Reductions::Key::kMetrics};
  state_.reductions.combine(key, std::move(mine), [this, iteration](Contribution of_all) {
    report_metrics(iteration, std::move(of_all));
    state_.in_progress.leave();
  });
}

// One node does, which takes part in every iteration, and all learn it before anybody has begun what it may change.
bool StageHost::speaks_for_rank() const { return state_.world.size > 1 && index_ == state_.plan.main_path().source; }

void StageHost::take_what_ranks_say(int64_t iteration, Contribution& of_all) {
  if (!speaks_for_rank()) return;
  if (state_.samplers != nullptr) state_.samplers->let_in_those_named(iteration, of_all);
  const auto asked = std::ranges::find(of_all, kAskedToEnd, &Part::name);
  if (asked == of_all.end()) return;
  if (asked->numbers.sum.value() > 0) state_.end_on_all_ranks(iteration);
  of_all.erase(asked);
}

// On any rank's thread. What goes wrong is the run's failure: a file may be full that takes the line of an iteration.
void StageHost::report_metrics(int64_t iteration, Contribution of_all) {
  if (state_.is_abandoned(iteration)) return;
  take_what_ranks_say(iteration, of_all);
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
  state_.own_ends.node_ended(iteration.index);
}

// A source that reads other data on another rank, or a node that keeps what only its own groups have given it, would go
// unnoticed: rank 0 alone is saved.
void StageHost::compare_states(int64_t iteration) {
  if (state_.world.owners() == 1 || !state_.world.owns_slots()) return;
  Contribution mine;
  if (!is_absent_) {
    const double digest = digest_of(*part_.node);
    mine = {maximum_part("largest", digest), maximum_part("smallest, negative", -digest)};
  }
  state_.in_progress.enter();
  const auto compare = [this, iteration](const Contribution& of_all) {
    try {
      if (!of_all.empty() && of_all[0].top != -of_all[1].top)
        throw UserError("what it keeps is not the same on all ranks",
                        "all ranks must read the same data; a node may keep only what all ranks have added up");
    } catch (...) {
      state_.failure.capture(WorkPlace{.node = plan_.name, .iteration = std::max<int64_t>(0, iteration)});
    }
    state_.in_progress.leave();
  };
  state_.reductions.combine({.iteration = iteration, .node = index_, .point = Reductions::Key::kState}, std::move(mine), compare);
}

bool StageHost::announces_save(const Iteration& iteration) {
  const bool others_have_parts = state_.world.owners() > 1 && !updated_models_.empty();
  return others_have_parts && state_.checkpointer != nullptr && state_.checkpointer->announce(updated_models_, iteration.index);
}

void StageHost::save(const Iteration& iteration, bool told_to_save) {
  compare_states(iteration.index);
  if (state_.own_parts != nullptr && told_to_save) {
    for (const std::string& model : updated_models_) state_.own_parts->save(model, iteration.index + 1);
  }
  if (state_.checkpointer == nullptr) return;
  state_.checkpointer->node_ended(plan_.name, iteration.index, *part_.node);
  for (const std::string& model : updated_models_) state_.checkpointer->model_updated(model, iteration.index);
}

void StageHost::release_models(const Iteration& iteration) {
  for (const std::string& model : updated_models_) state_.trained.at(model).reach(iteration.index + 1);
  for (const std::string& model : published_models_) state_.gates.at(model).publish(iteration.index + 1);
}

}  // namespace sluice::engine
