#include "engine/schedule/intake.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/strings.h"
#include "engine/contract/contract_breach.h"
#include "engine/observe/engine_metrics.h"
#include "engine/plan/capacity.h"
#include "engine/schedule/node_runner.h"

namespace sluice::engine {

class Intake::RolloutSink final : public Rollout::Sink {
 public:
  explicit RolloutSink(Intake& intake) : intake_(intake) {}

  void return_credit(int64_t group_index, int64_t tokens) override {
    const auto held = intake_.credit_.find(group_index);
    if (held == intake_.credit_.end() || tokens < 0 || tokens > held->second.tokens()) {
      throw_contract_breach("it returns " + std::to_string(tokens) + " tokens of credit of group " + std::to_string(group_index) +
                            ", which it does not hold");
    }
    held->second.give_back(tokens);
  }

  bool take_credit(int64_t group_index, int64_t tokens) override {
    const auto held = intake_.credit_.find(group_index);
    const int64_t most = intake_.path_.plan.capacity.group_tokens;
    if (held == intake_.credit_.end() || tokens < 0 || tokens > most - held->second.tokens()) {
      throw_contract_breach("it takes " + std::to_string(tokens) + " tokens of credit for group " + std::to_string(group_index) +
                            ", which it was not given or which has the most already");
    }
    if (held->second.try_grow(tokens)) return true;
    intake_.refused_tokens_ = tokens;
    return false;
  }

  void finish(Group group) override { finished.push_back(std::move(group)); }

  void worked(int64_t prompt_tokens, int64_t sampled_tokens) override {
    intake_.slice_.prompt_tokens += prompt_tokens;
    intake_.slice_.tokens += sampled_tokens;
  }

  std::vector<Group> finished;

 private:
  Intake& intake_;
};

Intake::Intake(RunState& state, Parts parts, std::function<void(Packet)> emit, std::function<void()> finished)
    : state_(state),
      index_(parts.path),
      path_(state.paths[static_cast<size_t>(parts.path)]),
      source_plan_(state.plan.nodes[static_cast<size_t>(path_.plan.source)]),
      parts_(std::move(parts)),
      emit_(std::move(emit)),
      finished_(std::move(finished)),
      readers_(state.streams.readers_at_intake(index_)),
      executor_(executor_index(state.plan, source_plan_.executor)),
      on_demand_(takes_on_demand(state.plan.budget, *maker_plan().type, maker_plan().needs)),
      quota_(source_plan_.needs.groups_per_iteration),
      filter_(path_.plan.refill ? &state.plan.nodes[static_cast<size_t>(*path_.plan.refill)].needs : nullptr),
      packer_(path_.plan.micro_batch_tokens, path_.plan.capacity.group_tokens),
      iteration_{.index = parts_.begun - 1},
      follows_(path_.plan.measures()),
      seen_iteration_(parts_.begun - 1) {
  for (const ModelNeed& need : maker_plan().needs.models) {
    const auto gate = state.gates.find(need.model);
    if (need.use == ModelUse::kSamples && gate != state.gates.end()) gates_.push_back(&gate->second);
  }
  path_.version_wanted.reach(path_.plan.version_for(parts_.begun));
  if (!path_.plan.measures()) return;
  StateWriter first;
  parts_.source->save(first);
  first_state_ = first.take();
}

bool Intake::is_due(int64_t iteration) const {
  return !path_.plan.measures() || path_.plan.settings.is_due(iteration, state_.plan.pipeline.iterations);
}

bool Intake::passes_over(int64_t iteration) const { return !is_due(iteration) || (!path_.plan.measures() && data_ended_); }

// At most lag + 2 iterations are open, so that what is slow behind the trainer cannot pile up without bound. A path that follows
// begins what another one has begun; and so does every path of a run that is interrupted.
bool Intake::may_begin() const {
  const int64_t next = iteration_.index + 1;
  if (in_iteration_ || next >= state_.iterations || next >= state_.log.reported() + state_.most_open_iterations()) return false;
  if ((follows_ || state_.interrupted) && !state_.progress.is_led(index_, next)) return false;
  return passes_over(next) || has_version(path_.plan.version_for(next));
}

bool Intake::has_version(int64_t version) const {
  return std::ranges::all_of(gates_, [&](const VersionGate* gate) { return gate->has(version); });
}

bool Intake::may_fetch() const { return in_iteration_ && !data_ended_ && !waiting_ && !ends_early() && fetched_ < round_end_; }

// What has started goes first: a younger group would only be preempted for it.
bool Intake::fits() const { return waiting_ && !ends_early() && refused_tokens_ == 0 && path_.budget->has_free(waiting_tokens_); }

bool Intake::may_step() const {
  if (!parts_.rollout || parts_.rollout->idle()) return false;
  return !parts_.rollout->blocked() || path_.budget->has_free(refused_tokens_);
}

bool Intake::round_complete() const {
  const bool all_fetched = data_ended_ || fetched_ == round_end_;
  return in_iteration_ && all_fetched && !waiting_ && done_ == fetched_;
}

bool Intake::undecided() const {
  return filter_ != nullptr && (!round_flushed_ || path_.tally.count().judged < fetched_ || wants_round());
}

bool Intake::wants_round() const {
  if (filter_ == nullptr || !in_iteration_ || !round_flushed_ || data_ended_) return false;
  const FilterTally::Count count = path_.tally.count();
  return count.judged == fetched_ && count.kept < quota_ && fetched_ < filter_->most_draws * quota_;
}

bool Intake::iteration_complete() const { return round_complete() && !undecided(); }

bool Intake::over() const {
  const int64_t next = iteration_.index + (in_iteration_ ? 0 : 1);
  if (next >= state_.iterations || state_.ending.drops(next)) return true;
  return follows_ && state_.progress.is_over(index_, next);
}

// After an interrupt an iteration whose groups are all admitted is still finished; one that lacks groups is abandoned.
bool Intake::wants_to_end() const {
  if (!state_.interrupted || follows_ || has_to_finish_) return false;
  if (!in_iteration_) return !state_.progress.is_led(index_, iteration_.index + 1);
  return waiting_ || wants_round() || (!data_ended_ && fetched_ < round_end_);
}

bool Intake::ready() {
  if (finished_run_) return false;
  if (state_.stopping() || over() || wants_to_end()) return true;
  return may_step() || may_begin() || may_fetch() || fits() || (round_complete() && !round_flushed_) || wants_round() ||
         iteration_complete();
}

void Intake::begin_step() {
  state_.activity.begin(executor_, node());
  at_ = node();
  slice_ = {};
  guarded(&Intake::take_in);
}

void Intake::end_step() {
  guarded(&Intake::bring_out);
  const bool worked = slice_.tokens > 0 || slice_.prompt_tokens > 0 || slice_.groups > 0;
  slice_.iteration = iteration_.index;
  if (worked)
    state_.activity.end(executor_, std::move(slice_));
  else
    state_.activity.end_unseen(executor_);
  if (worked) state_.steps.fetch_add(1, std::memory_order_relaxed);
  seen_iteration_ = iteration_.index;
  seen_in_iteration_ = in_iteration_;
  seen_waiting_tokens_ = waiting_ ? waiting_tokens_ : refused_tokens_;
  if (parts_.rollout) {
    const Rollout::PoolBytes pool = parts_.rollout->pool_bytes();
    seen_pool_held_ = pool.held;
    seen_pool_used_ = pool.used;
  }
  seen_undecided_ = in_iteration_ && round_complete() && undecided();
}

// Whose code runs: who is named when it fails or hangs.
void Intake::turn_to(int node) {
  at_ = node;
  state_.activity.show(executor_, node);
}

// Of a source the group that it was asked for; of a rollout those that it has.
WorkPlace Intake::place() const {
  WorkPlace place{.node = state_.plan.nodes[static_cast<size_t>(at_)].name, .iteration = std::max<int64_t>(0, iteration_.index)};
  if (at_ == path_.plan.source) {
    place.first_group = place.last_group = fetched_;
  } else if (!credit_.empty()) {
    place.first_group = credit_.begin()->first;
    place.last_group = credit_.rbegin()->first;
  }
  return place;
}

void Intake::guarded(void (Intake::*half)()) {
  if (finished_run_) return;
  if (state_.stopping()) return finish_run();
  try {
    (this->*half)();
  } catch (...) {
    state_.failure.capture(place());
    finish_run();
  }
}

void Intake::take_in() {
  if (over()) return finish_run();
  if (wants_to_end()) {
    if (state_.progress.leave(index_, iteration_.index + (in_iteration_ ? 0 : 1))) return finish_run();
    has_to_finish_ = in_iteration_;
  }
  if (may_begin()) begin_iteration();
  if (wants_round()) begin_round(quota_ - path_.tally.count().kept);
  while (may_fetch() || fits()) {
    if (may_fetch()) fetch_group();
    if (!fits() || !admit_group()) break;
    if (!parts_.rollout) break;  // one group a step: nodes downstream on this executor go first
  }
}

void Intake::bring_out() {
  for (Group& group : std::exchange(complete_, {})) finish_group(std::move(group));
  if (parts_.rollout && !parts_.rollout->idle()) {
    RolloutSink sink(*this);
    refused_tokens_ = 0;
    parts_.rollout->step(sink);
    for (Group& group : sink.finished) finish_group(std::move(group));
  }
  if (round_complete() && !round_flushed_) {
    round_flushed_ = true;
    emit_batches(packer_.flush());
  }
  if (iteration_complete()) end_iteration();
}

void Intake::begin_iteration() {
  const int64_t next = iteration_.index + 1;
  if (!follows_ && !state_.progress.begin(index_, next)) return finish_run();
  ++iteration_.index;
  iteration_.policy_version = path_.plan.version_for(next);
  if (passes_over(next)) return pass_over_iteration();
  begin_sampling();
}

// Of a path that measures, the nodes do not hear of it. Where data have ended, to them it is an iteration without groups.
void Intake::pass_over_iteration() {
  if (state_.checkpointer != nullptr) state_.checkpointer->source_ended(iteration_.index);
  save_state(path_.plan.source, *parts_.source);
  state_.log.node_ended(iteration_.index, static_cast<size_t>(path_.plan.source), {});
  if (parts_.rollout) {
    save_state(*path_.plan.rollout, *parts_.rollout);
    state_.log.node_ended(iteration_.index, static_cast<size_t>(*path_.plan.rollout), {});
  }
  hand_on_end(/*passed_over=*/path_.plan.measures());
}

void Intake::begin_sampling() {
  in_iteration_ = true;
  has_to_finish_ = false;
  fetched_ = done_ = round_end_ = last_finished_ = 0;
  path_.tally.reset();
  begin_round(quota_);
  turn_to(path_.plan.source);
  parts_.source->begin_iteration(iteration_);
  turn_to(node());
  if (parts_.rollout) parts_.rollout->begin_iteration(iteration_);
}

void Intake::begin_round(int64_t missing) {
  round_flushed_ = false;
  if (filter_ == nullptr) {
    round_end_ = missing;
    return;
  }
  round_end_ = fetched_ + groups_of_round(missing, filter_->oversample, filter_->most_draws * quota_ - fetched_);
}

void Intake::fetch_group() {
  Group group;
  group.iteration = iteration_.index;
  group.index = fetched_;
  turn_to(path_.plan.source);
  data_ended_ = !parts_.source->next_group(group);
  if (!data_ended_) check_columns(group, path_.plan.source);
  turn_to(node());
  if (data_ended_) return;
  ++fetched_;
  ++slice_.groups;
  if (parts_.rollout && !parts_.rollout->wants(group)) return drop_group(group.index);
  const int64_t worst = worst_tokens(group), bound = path_.plan.capacity.group_tokens;
  if (worst < 0 || worst > bound) {
    throw_contract_breach("group " + std::to_string(group.index) + " may take " + std::to_string(worst) +
                          " tokens; the plan was proven for at most " + std::to_string(bound));
  }
  waiting_tokens_ = on_demand_ ? parts_.rollout->least_tokens(group) : worst;
  if (waiting_tokens_ < 0 || waiting_tokens_ > worst) {
    throw_contract_breach("group " + std::to_string(group.index) + " is to be admitted with " + std::to_string(waiting_tokens_) +
                          " tokens, and may take " + std::to_string(worst));
  }
  waiting_ = std::move(group);
}

// It was drawn, so a filter that has groups replaced counts it as one that it dropped.
void Intake::drop_group(int64_t index) {
  ++done_;
  if (filter_ != nullptr) path_.tally.judged(1, 0);
  emit_batches(packer_.skip(index));
}

int64_t Intake::worst_tokens(const Group& group) const {
  return parts_.rollout ? parts_.rollout->worst_tokens(group) : static_cast<int64_t>(group.layout.tokens());
}

bool Intake::admit_group() {
  if (!path_.budget->try_acquire(waiting_tokens_)) return false;
  Group group = std::move(*std::exchange(waiting_, std::nullopt));
  credit_.emplace(group.index, Credit(*path_.budget, waiting_tokens_));
  if (parts_.rollout) {
    parts_.rollout->start(std::move(group));
  } else {
    slice_.tokens += waiting_tokens_;
    complete_.push_back(std::move(group));
  }
  return true;
}

void Intake::finish_group(Group group) {
  check_columns(group, node());
  const auto held = credit_.find(group.index);
  if (held == credit_.end())
    throw_contract_breach("it finishes group " + std::to_string(group.index) + ", which it was not given");
  const auto tokens = static_cast<int64_t>(group.layout.tokens());
  if (tokens > held->second.tokens()) {
    throw_contract_breach("group " + std::to_string(group.index) + " has " + std::to_string(tokens) + " tokens, its credit was " +
                          std::to_string(held->second.tokens()));
  }
  if (on_demand_ && group.index < last_finished_) {
    throw_contract_breach("it finishes group " + std::to_string(last_finished_) + " before group " + std::to_string(group.index) +
                          ", though credit is taken on demand");
  }
  last_finished_ = group.index;
  held->second.give_back(held->second.tokens() - tokens);
  ++done_;
  emit_batches(packer_.add(std::move(group)));
}

void Intake::emit_batches(std::vector<Packer::Batch> batches) {
  for (Packer::Batch& batch : batches) {
    std::vector<Credit> credits;
    for (const int64_t group : batch.group_indices) credits.push_back(std::move(credit_.extract(group).mapped()));
    auto packed = std::make_shared<BatchState>(iteration_.index, batch.id, std::move(batch.layout),
                                               std::move(batch.group_indices), std::move(credits), readers_, state_.columns);
    tell_observers(*packed, batch.columns);
    for (Group::NamedColumn& column : batch.columns) packed->store(slot_of(column.spec), std::move(column.data));
    MetricsRecorder& recorder = parts_.rollout ? *parts_.rollout_metrics : *parts_.source_metrics;
    recorder.sum(metrics::kGroups, static_cast<double>(packed->layout.groups()));
    recorder.sum(metrics::kSamples, static_cast<double>(packed->layout.samples()));
    recorder.sum(metrics::kTokens, static_cast<double>(packed->layout.tokens()));
    recorder.sum(parts_.rollout ? metrics::kSampledTokens : metrics::kActionTokens,
                 static_cast<double>(packed->layout.actions()));
    if (index_ == state_.main_path) state_.activity.packed(iteration_.index, packed->layout);
    state_.traffic.handed_on(node(), packed.get());
    emit_({.sequence = sequence_++, .iteration = iteration_, .batch = std::move(packed)});
  }
}

// Of a column that the source or the rollout writes.
size_t Intake::slot_of(const ColumnSpec& spec) const {
  for (const int writer : {path_.plan.source, path_.plan.maker()}) {
    for (const int column : state_.plan.nodes[static_cast<size_t>(writer)].writes) {
      if (state_.slots[static_cast<size_t>(column)] == spec) return static_cast<size_t>(column);
    }
  }
  throw_contract_breach("it writes column '" + spec.name + "', which its contract does not say");
}

// Before they are stored: what no node reads is gone then.
void Intake::tell_observers(const BatchState& packed, const std::vector<Group::NamedColumn>& columns) {
  WrittenColumns written{
      .iteration = packed.iteration, .micro_batch = packed.id, .layout = packed.layout, .group_indices = packed.group_indices};
  for (const Group::NamedColumn& column : columns) written.columns.emplace_back(&column.spec, &column.data);
  if (index_ == state_.main_path) state_.activity.wrote(written);
}

// Of what the graph needs, nothing may be missing: a reader would find an empty column.
void Intake::check_columns(const Group& group, int writer) const {
  for (const int column : state_.plan.nodes[static_cast<size_t>(writer)].writes) {
    const ColumnSpec& spec = state_.slots[static_cast<size_t>(column)];
    const auto found = std::ranges::find(group.columns, spec, &Group::NamedColumn::spec);
    if (found == group.columns.end())
      throw_contract_breach("it did not write column '" + spec.name + "', which its contract promises");
    const size_t entries = spec.extent == Extent::kGroup ? 1 : group.layout.count(spec.extent);
    if (found->data.count() == entries) continue;
    throw_contract_breach("column '" + spec.name + "' of group " + std::to_string(group.index) + " has " +
                          std::to_string(found->data.count()) + " entries where the layout has " + std::to_string(entries));
  }
}

void Intake::end_iteration() {
  packer_.finish_iteration();        // nothing is left in it
  const bool empty = fetched_ == 0;  // the data ended exactly between two iterations
  in_iteration_ = false;
  if (empty && !path_.plan.measures()) {
    --iteration_.index;  // no such iteration: others may have it
    follows_ = true;
    return state_.progress.follow(index_, iteration_.index + 1);
  }
  turn_to(path_.plan.source);
  if (state_.checkpointer != nullptr) state_.checkpointer->source_ended(iteration_.index);
  parts_.source->end_iteration(iteration_);
  if (path_.plan.measures()) {  // the same groups the next time
    data_ended_ = false;
    parts_.source->load(StateReader(first_state_));
  }
  save_state(path_.plan.source, *parts_.source);
  turn_to(node());
  state_.log.node_ended(iteration_.index, static_cast<size_t>(path_.plan.source), parts_.source_metrics->take(state_.reducer));
  if (parts_.rollout) {
    parts_.rollout->end_iteration(iteration_);
    save_state(*path_.plan.rollout, *parts_.rollout);
    parts_.rollout_metrics->maximum(metrics::kKvBytesMax, static_cast<double>(parts_.rollout->pool_bytes().held));
    if (path_.plan.measures())
      parts_.rollout_metrics->value(metrics::kPolicyVersion, static_cast<double>(iteration_.policy_version));
    state_.log.node_ended(iteration_.index, static_cast<size_t>(*path_.plan.rollout),
                          parts_.rollout_metrics->take(state_.reducer));
  }
  hand_on_end(/*passed_over=*/false);
  if (!data_ended_) return;
  follows_ = true;
  state_.progress.follow(index_, iteration_.index + 1);
}

void Intake::hand_on_end(bool passed_over) {
  state_.progress.end(index_, iteration_.index);
  emit_({.sequence = sequence_++, .iteration = iteration_, .batch = nullptr, .passed_over = passed_over});
  path_.version_wanted.reach(path_.plan.version_for(iteration_.index + 1));
}

void Intake::save_state(int node, const NodeBase& implementation) {
  if (state_.checkpointer == nullptr) return;
  state_.checkpointer->node_ended(state_.plan.nodes[static_cast<size_t>(node)].name, iteration_.index, implementation);
}

void Intake::finish_run() {
  if (std::exchange(finished_run_, true)) return;
  path_.version_wanted.abandon();
  state_.progress.finish(index_);
  finished_();
}

Intake::Wait Intake::waiting() const {
  const int64_t next = seen_iteration_ + 1;
  if (seen_waiting_tokens_ > 0) return Wait::kCredit;
  if (seen_undecided_) return Wait::kVerdicts;
  if (seen_in_iteration_ || next >= state_.iterations) return Wait::kNothing;
  if (is_due(next) && !has_version(path_.plan.version_for(next))) return Wait::kVersion;
  return next >= state_.log.reported() + state_.most_open_iterations() ? Wait::kReports : Wait::kNothing;
}

std::string Intake::waits_for() const {
  const int64_t iteration = seen_iteration_;
  switch (waiting()) {
    case Wait::kNothing:
      return {};
    case Wait::kCredit:
      return std::to_string(seen_waiting_tokens_) + " tokens of credit: " + std::to_string(path_.budget->in_flight()) + " of " +
             std::to_string(path_.budget->capacity()) + " are in flight";
    case Wait::kVerdicts:
      return "the verdicts of filter '" + state_.plan.nodes[static_cast<size_t>(*path_.plan.refill)].name + "' on iteration " +
             std::to_string(iteration);
    case Wait::kVersion:
      return "version " + std::to_string(path_.plan.version_for(iteration + 1)) + " of the weights to be published";
    case Wait::kReports:
      return "iteration " + std::to_string(state_.log.reported()) + " to be ended by every node";
  }
  return {};
}

}  // namespace sluice::engine
