#include "engine/intake.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/node_runner.h"

namespace sluice::engine {
namespace {

const PlanNode* rollout_of(const Plan& plan) { return plan.rollout ? &plan.nodes[static_cast<size_t>(*plan.rollout)] : nullptr; }

int count_token_readers(const Plan& plan) {
  return static_cast<int>(std::ranges::count_if(
      plan.nodes, [](const PlanNode& node) { return node.type->kind == NodeKind::kOrdinary && !node.reads.empty(); }));
}

}  // namespace

class Intake::RolloutSink final : public Rollout::Sink {
 public:
  explicit RolloutSink(Intake& intake) : intake_(intake) {}

  void return_credit(int64_t group_index, int64_t tokens) override {
    const auto held = intake_.credit_.find(group_index);
    SLUICE_CHECK(held != intake_.credit_.end() && tokens <= held->second, "a rollout returns credit that it does not hold");
    held->second -= tokens;
    intake_.state_.budget.release(tokens);
  }

  void finish(Group group) override { finished.push_back(std::move(group)); }

  void worked(int64_t, int64_t) override {}

  std::vector<Group> finished;

 private:
  Intake& intake_;
};

Intake::Intake(RunState& state, Parts parts, Reducer& reducer, std::function<void(Packet)> emit, std::function<void()> finished)
    : state_(state),
      source_plan_(state.plan.nodes[static_cast<size_t>(state.plan.source)]),
      rollout_plan_(rollout_of(state.plan)),
      parts_(std::move(parts)),
      reducer_(reducer),
      emit_(std::move(emit)),
      finished_(std::move(finished)),
      readers_(ordinary_readers(state.plan)),
      token_readers_(count_token_readers(state.plan)),
      executor_(executor_index(state.plan, source_plan_.executor)),
      groups_per_iteration_(source_plan_.needs.groups_per_iteration),
      packer_(state.plan.budget.micro_batch_tokens, state.plan.capacity.group_tokens) {}

bool Intake::may_begin() const {
  const int64_t next = iteration_.index + 1;
  return !in_iteration_ && !data_ended_ && !state_.interrupted && next < state_.plan.pipeline.iterations && state_.gate.open_for(next);
}

bool Intake::may_fetch() const {
  return in_iteration_ && !data_ended_ && !waiting_ && !state_.interrupted && fetched_ < groups_per_iteration_;
}

bool Intake::fits() const {
  return waiting_ && !state_.interrupted && state_.budget.in_flight() + waiting_tokens_ <= state_.budget.capacity();
}

bool Intake::iteration_complete() const {
  const bool all_fetched = data_ended_ || fetched_ == groups_per_iteration_;
  return in_iteration_ && all_fetched && !waiting_ && done_ == fetched_;
}

// After an interrupt an iteration whose groups are all admitted is still finished; one that lacks groups is abandoned.
bool Intake::drained() const {
  if (!in_iteration_) {
    return data_ended_ || state_.interrupted || iteration_.index + 1 >= state_.plan.pipeline.iterations;
  }
  return state_.interrupted && (waiting_ || (!data_ended_ && fetched_ < groups_per_iteration_));
}

bool Intake::ready() {
  if (finished_run_) return false;
  if (state_.stopping() || drained()) return true;
  const bool stepping = parts_.rollout && !parts_.rollout->idle();
  return stepping || may_begin() || may_fetch() || fits() || iteration_complete();
}

void Intake::step() {
  if (state_.stopping()) return finish_run();
  try {
    advance();
  } catch (...) {
    const PlanNode& node = rollout_plan_ != nullptr ? *rollout_plan_ : source_plan_;
    state_.failure.capture({.node = node.name, .iteration = iteration_.index, .first_group = 0, .groups = fetched_});
  }
}

void Intake::advance() {
  if (drained()) return finish_run();
  if (may_begin()) begin_iteration();
  while (may_fetch() || fits()) {
    if (may_fetch()) fetch_group();
    if (!fits()) break;
    admit_group();
    if (!parts_.rollout) break;  // one group a step: nodes downstream on this executor go first
  }
  if (parts_.rollout && !parts_.rollout->idle()) step_rollout();
  if (iteration_complete()) end_iteration();
}

void Intake::begin_iteration() {
  ++iteration_.index;
  iteration_.policy_version = state_.gate.version_for(iteration_.index);
  in_iteration_ = true;
  fetched_ = done_ = 0;
  parts_.source->begin_iteration(iteration_);
  if (parts_.rollout) parts_.rollout->begin_iteration(iteration_);
}

void Intake::fetch_group() {
  Group group;
  group.iteration = iteration_.index;
  group.index = fetched_;
  if (!parts_.source->next_group(group)) {
    data_ended_ = true;
    return;
  }
  ++fetched_;
  waiting_tokens_ = worst_tokens(group);
  SLUICE_CHECK(waiting_tokens_ <= state_.plan.capacity.group_tokens, "a group is larger than the bound that the plan was proven with");
  waiting_ = std::move(group);
}

int64_t Intake::worst_tokens(const Group& group) const {
  return parts_.rollout ? parts_.rollout->worst_tokens(group) : static_cast<int64_t>(group.layout.tokens());
}

void Intake::admit_group() {
  if (!state_.budget.try_acquire(waiting_tokens_)) return;
  Group group = std::move(*std::exchange(waiting_, std::nullopt));
  credit_[group.index] = waiting_tokens_;
  if (parts_.rollout) {
    parts_.rollout->start(std::move(group));
  } else {
    const Activity::Scope busy(state_.activity, WorkClass::kOther,
                               {.executor = executor_, .node = source_plan_.name, .iteration = iteration_.index, .tokens = waiting_tokens_});
    finish_group(std::move(group));
  }
}

void Intake::step_rollout() {
  RolloutSink sink(*this);
  {
    Activity::Scope busy(state_.activity, WorkClass::kRollout,
                         {.executor = executor_, .node = rollout_plan_->name, .iteration = iteration_.index});
    parts_.rollout->step(sink);
    int64_t tokens = 0;
    for (const Group& group : sink.finished) tokens += static_cast<int64_t>(group.layout.tokens());
    busy.set_tokens(tokens);
  }
  for (Group& group : sink.finished) finish_group(std::move(group));
}

void Intake::finish_group(Group group) {
  const auto held = credit_.find(group.index);
  SLUICE_CHECK(held != credit_.end(), "a rollout finishes a group that it was not given");
  const auto tokens = static_cast<int64_t>(group.layout.tokens());
  SLUICE_CHECK(tokens <= held->second, "a group became larger than its credit");
  state_.budget.release(held->second - tokens);
  credit_.erase(held);
  ++done_;
  emit_batches(packer_.add(std::move(group)));
}

void Intake::emit_batches(std::vector<Packer::Batch> batches) {
  for (Packer::Batch& batch : batches) {
    auto packed = std::make_shared<BatchState>(iteration_.index, batch.id, batch.first_group, std::move(batch.layout),
                                               state_.slots.size(), state_.columns);
    for (Group::NamedColumn& column : batch.columns) {
      const auto slot = std::ranges::find(state_.slots, column.spec);
      SLUICE_CHECK(slot != state_.slots.end(), "column '" + column.spec.name + "' is not in the plan");
      const auto index = static_cast<size_t>(slot - state_.slots.begin());
      packed->store(index, std::move(column.data), readers_[index]);
    }
    MetricsRecorder& metrics = rollout_plan_ != nullptr ? *parts_.rollout_metrics : *parts_.source_metrics;
    metrics.sum("groups", static_cast<double>(packed->layout.groups()));
    metrics.sum("samples", static_cast<double>(packed->layout.samples()));
    metrics.sum("tokens", static_cast<double>(packed->layout.tokens()));
    metrics.sum(rollout_plan_ != nullptr ? "sampled_tokens" : "action_tokens", static_cast<double>(packed->layout.actions()));
    packed->credit = static_cast<int64_t>(packed->layout.tokens());
    packed->token_readers_left = token_readers_;
    if (token_readers_ == 0) state_.budget.release(std::exchange(packed->credit, 0));
    emit_({.sequence = sequence_++, .iteration = iteration_, .batch = std::move(packed)});
  }
}

void Intake::end_iteration() {
  emit_batches(packer_.finish_iteration());
  const bool empty = fetched_ == 0;  // the data ended exactly between two iterations
  in_iteration_ = false;
  if (empty) return;
  parts_.source->end_iteration(iteration_);
  state_.log.node_ended(iteration_.index, static_cast<size_t>(state_.plan.source), parts_.source_metrics->take(reducer_));
  if (parts_.rollout) {
    parts_.rollout->end_iteration(iteration_);
    parts_.rollout_metrics->maximum("kv_bytes_max", static_cast<double>(parts_.rollout->take_peak_bytes()));
    state_.log.node_ended(iteration_.index, static_cast<size_t>(*state_.plan.rollout), parts_.rollout_metrics->take(reducer_));
  }
  emit_({.sequence = sequence_++, .iteration = iteration_, .batch = nullptr});
}

void Intake::finish_run() {
  finished_run_ = true;
  finished_();
}

}  // namespace sluice::engine
