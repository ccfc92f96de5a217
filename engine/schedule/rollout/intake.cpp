#include "engine/schedule/rollout/intake.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "engine/observe/engine_metrics.h"
#include "engine/plan/capacity.h"
#include "engine/schedule/rollout/group_columns.h"

namespace sluice::engine {

namespace {

const NodeNeeds* refilling_filter(const Plan& plan, const PlanPath& path) {
  return path.refill ? &plan.nodes[static_cast<size_t>(*path.refill)].needs : nullptr;
}

StageHost& maker_of(const Intake::Parts& parts) { return parts.rollout ? *parts.rollout : *parts.source; }

AdmissionRules intake_rules(const Plan& plan, const PlanNode& maker) {
  return {.most_tokens = plan.paths[static_cast<size_t>(maker.path)].capacity.group_tokens,
          .on_demand = plan.takes_on_demand(maker)};
}

}  // namespace

Intake::Intake(RunState& state, Parts parts, std::function<void(Packet)> emit, std::function<void()> finished)
    : PathHead(state, parts.path, maker_of(parts), intake_rules(state.plan, maker_of(parts).plan()), parts.begun,
               std::move(finished)),
      parts_(std::move(parts)),
      source_(parts_.source->as<Source>()),
      samples_(state.plan.samples(state.world.rank)),
      rounds_(path_.tally, parts_.source->plan().needs.groups_per_iteration, refilling_filter(state.plan, path_.plan),
              state.world),
      packing_(state, index_, maker_, std::move(emit)),
      iteration_{.index = parts_.begun - 1},
      follows_(path_.plan.measures()),
      at_(&maker_) {
  if (path_.trained) take_over_.emplace(*path_.trained);
  if (take_over_ && parts_.help != nullptr) {
    helping_.emplace(parts_.help->asker(), index_, state.world);
    given_.emplace(parts_.help->owner(), index_, *take_over_);
  }
  path_.version_wanted.reach(path_.plan.version_for(parts_.begun));
}

bool Intake::passes_over(int64_t iteration) const {
  return !path_.plan.is_due(iteration, state_.plan.pipeline.iterations) || (!path_.plan.measures() && data_ended_);
}

// At most lag + 2 iterations are open, so that what is slow after the trainer cannot pile up without bound. A path that follows
// begins what another one has begun; and so does every path of a run that is interrupted.
bool Intake::may_begin() const {
  const int64_t next = iteration_.index + 1;
  if (in_iteration_ || next >= state_.iterations || next >= state_.log.reported() + state_.most_open_iterations()) return false;
  if ((follows_ || state_.interrupted) && !state_.progress.is_led(index_, next)) return false;
  return passes_over(next) || has_version(path_.plan.version_for(next));
}

bool Intake::may_draw() const { return in_iteration_ && !admission_.has_waiting() && !ends_early() && rounds_.wants_group(); }

bool Intake::may_admit() const { return admits() && !ends_early() && admission_.fits(); }

// Where the next iteration could begin, that is better than to help with this one.
bool Intake::may_help() const {
  if (!helping_ || !in_iteration_ || !all_groups_are_in() || !helping_->may_ask()) return false;
  const int64_t next = iteration_.index + 1;
  if (next < state_.iterations && has_version(path_.plan.version_for(next)) && follows_weights()) return false;
  return admission_.can_reserve();
}

bool Intake::may_step() const {
  if (rollout_ == nullptr || rollout_->idle()) return false;
  return !rollout_->blocked() || admission_.may_retry();
}

bool Intake::round_complete() const { return in_iteration_ && !admission_.has_waiting() && rounds_.complete(); }

bool Intake::iteration_complete() const {
  if (has_to_help()) return false;
  return round_complete() && !rounds_.undecided();
}

bool Intake::over() const {
  const int64_t next = iteration_.index + (in_iteration_ ? 0 : 1);
  if (next >= state_.iterations || state_.cutoff.drops(next)) return true;
  return follows_ && state_.progress.is_over(index_, next);
}

// After an interrupt an iteration whose groups are all admitted is still finished; one that lacks groups is abandoned.
bool Intake::wants_to_end() const {
  if (!state_.interrupted || follows_ || has_to_finish_) return false;
  if (!in_iteration_) return !state_.progress.is_led(index_, iteration_.index + 1);
  return admission_.has_waiting() || rounds_.wants_round() || rounds_.wants_group();
}

bool Intake::ready() {
  if (has_finished()) return false;
  if (state_.stopping() || over() || wants_to_end() || lacks_samplers()) return true;
  if (helping_ && parts_.help->has_news(index_, helping_->round())) return true;
  if (may_help() || (take_over_ && take_over_->fits())) return true;
  return may_step() || may_begin() || may_draw() || may_admit() || (round_complete() && !rounds_.flushed()) ||
         (in_iteration_ && (rounds_.wants_verdicts() || rounds_.wants_round())) || iteration_complete();
}

void Intake::show() {
  seen_iteration_ = iteration_.index;
  seen_in_iteration_ = in_iteration_;
  seen_undecided_ = round_complete() && rounds_.undecided();
  admission_.show();
  if (take_over_) take_over_->show();
}

// Whose code runs: who is named when it fails or hangs.
void Intake::turn_to(const StageHost& host) {
  at_ = &host;
  state_.activity.show(host.executor(), host.index());
}

// Of a rollout those groups that it has.
WorkPlace Intake::place() const {
  if (at_ != parts_.source.get()) return place_of_maker(iteration_.index);
  return {.node = at_->plan().name, .iteration = std::max<int64_t>(0, iteration_.index)};
}

void Intake::take_in() {
  at_ = &maker_;
  if (over()) return finish_run();
  if (wants_to_end()) {
    if (state_.progress.leave(index_, iteration_.index + (in_iteration_ ? 0 : 1))) return finish_run();
    has_to_finish_ = in_iteration_;
  }
  if (may_begin()) begin_iteration();
  if (in_iteration_ && rounds_.wants_round()) begin_round();
  do {
    admit_what_fits();
  } while (helping_ && answer_questions());
  if (!helping_) return;
  take_prompt();
  if (may_help()) {
    if (auto credit = admission_.reserve()) helping_->ask(std::move(*credit));
  }
}

void Intake::admit_what_fits() {
  while (may_draw() || may_admit()) {
    if (may_draw()) for_group(rounds_.drawn(), [this] { draw_group(); });
    if (!admission_.has_waiting()) continue;  // another rank's, or dropped, or none: the next
    if (!may_admit() || !admit_group()) break;
    if (rollout_ == nullptr) break;  // one group a step: nodes downstream on this executor go first
  }
}

// Who asks gets the group that has no credit here. False: nobody gets one.
bool Intake::answer_questions() {
  if (!in_iteration_) return false;
  const Round here = helping_->round();
  GroupOwner& owner = parts_.help->owner();
  if (all_groups_are_in()) {
    owner.say_none_left(index_, here);
    return false;
  }
  while (const auto question = owner.take_question(index_, here)) {
    auto prompt = question->round == here ? next_to_give(question->only_again) : std::nullopt;
    if (prompt) {
      given_->give(*question, std::move(*prompt));
      return true;
    }
    owner.refuse(index_, *question);
  }
  return false;
}

// The oldest: what was given before comes first.
std::optional<Group> Intake::next_to_give(bool only_again) {
  if (only_again ? given_->is_next() : given_->has_again()) return given_->take_again();
  if (only_again || !admission_.has_waiting()) return std::nullopt;
  return admission_.give_away();
}

void Intake::take_prompt() {
  auto prompt = helping_->take_prompt();
  if (!prompt) return;
  turn_to(*parts_.rollout);
  admission_.admit(prompt->group, *rollout_, std::move(prompt->credit));
  ++slice_.groups;
  rollout_->start(std::move(prompt->group));
}

void Intake::bring_out() {
  for (Group& group : std::exchange(complete_, {})) finish_group(std::move(group));
  if (rollout_ != nullptr && !rollout_->idle()) {
    for (RolloutSink::Finished& finished : step_rollout()) finish_group(std::move(finished.group));
  }
  if (take_over_) take_over();
  if (lacks_samplers()) {  // as far as is known when all that has come is taken
    state_.failure.capture(state_.cut_short);
    return finish_run();
  }
  if (round_complete() && !rounds_.flushed()) {
    rounds_.flush();
    packing_.flush(iteration_, rounds_.last_complete());
  }
  if (in_iteration_ && rounds_.wants_verdicts()) ask_for_verdicts();
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
  parts_.source->pass_over(iteration_);
  if (parts_.rollout) parts_.rollout->pass_over(iteration_);
  hand_on_end();
}

void Intake::begin_round() {
  rounds_.begin_next_round();
  if (helping_) helping_->begin_round({.iteration = iteration_.index, .number = rounds_.round()});
  tell_samplers(/*has_groups=*/true);
}

void Intake::begin_sampling() {
  in_iteration_ = true;
  has_to_finish_ = false;
  rounds_.begin_iteration();
  if (helping_) helping_->begin_round({.iteration = iteration_.index, .number = rounds_.round()});
  tell_samplers(/*has_groups=*/true);
  turn_to(*parts_.source);
  parts_.source->begin(iteration_);
  turn_to(maker_);
  begin_maker(iteration_);
}

void Intake::draw_group() {
  Group group;
  group.iteration = iteration_.index;
  group.index = rounds_.drawn();
  group.slot = rounds_.slot();
  turn_to(*parts_.source);
  const bool is_group = source_.next_group(group);
  const bool is_mine = rounds_.is_mine();
  if (is_group && is_mine) check_columns(state_, group, path_.plan.source);
  turn_to(maker_);
  if (!is_group) return rounds_.end_data();
  rounds_.draw();
  const bool is_wanted = is_mine && (rollout_ == nullptr || rollout_->wants(group));
  if (is_mine) ++slice_.groups;
  if (is_wanted) {
    if (take_over_) take_over_->expect(group.index);
    return admission_.offer(std::move(group), rollout_);
  }
  if (is_mine)
    rounds_.drop(group.slot);
  else
    rounds_.finish();
  packing_.skip(iteration_, group.index, rounds_.last_complete());
}

// What the filter has kept in each slot, of the ranks that have it.
void Intake::ask_for_verdicts() {
  rounds_.ask_for_verdicts();
  Contribution mine;
  const FilterTally::BySlot kept = path_.tally.kept();
  const SlotRange slots = state_.world.mine();
  for (int slot = slots.first; slot < slots.last; ++slot)
    mine.push_back(sum_part(std::to_string(slot), static_cast<double>(kept[static_cast<size_t>(slot)])));
  const auto learn = [this](const Contribution& of_all) {
    FilterTally::BySlot kept_by_all(static_cast<size_t>(state_.world.slots));
    for (const Part& part : of_all) kept_by_all[std::stoul(part.name)] = static_cast<int64_t>(part.numbers.sum.value());
    if (!of_all.empty()) path_.tally.learn(std::move(kept_by_all));  // else the run is over
  };
  const Reductions::Key key{
      .iteration = iteration_.index, .node = *path_.plan.refill, .point = Reductions::Key::verdicts(rounds_.round())};
  state_.reductions.combine(key, std::move(mine), learn);
}

bool Intake::admit_group() {
  std::optional<Group> group = admission_.admit();
  if (!group) return false;
  if (rollout_ != nullptr) {
    rollout_->start(std::move(*group));
  } else {
    slice_.tokens += static_cast<int64_t>(group->layout.tokens());
    complete_.push_back(std::move(*group));
  }
  return true;
}

void Intake::finish_group(Group group) {
  Credit credit = settle(group);
  if (!state_.world.has_slot(group.slot)) return helping_->give_back(std::move(group), std::move(credit));
  if (take_over_) return take_over_->made_here(std::move(group), std::move(credit));
  hand_on(std::move(group), std::move(credit));
}

void Intake::hand_on(Group group, Credit credit) {
  rounds_.finish();
  packing_.add(iteration_, std::move(group), std::move(credit), rounds_.last_complete());
}

void Intake::take_over() {
  if (helping_) make_known_what_others_made();
  while (auto taken = take_over_->take()) {
    if (auto* group = std::get_if<Group>(&taken->group)) {
      hand_on(std::move(*group), std::move(taken->credit));
    } else {
      given_->fetch(iteration_.index, std::get<GroupOwner::Made>(std::move(taken->group)), std::move(taken->credit));
    }
  }
  if (given_) tell_of_next_again();
}

// Those that have no other room make it: see RolloutWorker.
void Intake::tell_of_next_again() {
  if (!given_->is_next() || std::exchange(told_again_, take_over_->next()) == take_over_->next()) return;
  tell_samplers(/*has_groups=*/true);
}

void Intake::make_known_what_others_made() {
  if (given_->learn()) {
    told_again_ = take_over_->next();
    parts_.help->owner().say_some_left(index_, helping_->round());
    tell_samplers(/*has_groups=*/true);
  }
  while (const auto declined = given_->take_declined()) forget_declined(*declined);
  while (auto fetched = given_->take_fetched()) {
    maker_.metrics().add(fetched->metrics);
    hand_on(std::move(fetched->group), std::move(fetched->credit));
  }
}

// As if the rollout had said so here, when the group was drawn.
void Intake::forget_declined(const GivenAway::Declined& declined) {
  maker_.metrics().add(declined.metrics);
  rounds_.drop(declined.slot);
  packing_.skip(iteration_, declined.group, rounds_.last_complete());
}

void Intake::tell_samplers(bool has_groups) {
  if (parts_.samplers.empty()) return;
  const int64_t iteration = iteration_.index + (in_iteration_ ? 0 : 1);
  const int64_t round = in_iteration_ ? rounds_.round() : 0;
  parts_.help->owner().announce(parts_.samplers, index_,
                                {.round = {.iteration = iteration, .number = round},
                                 .has_groups = has_groups,
                                 .has_again = given_ && given_->is_next(),
                                 .is_over = has_finished(),
                                 .ends_early = has_finished() && state_.ends_early()});
}

void Intake::end_iteration() {
  packing_.restart();
  told_again_ = -1;
  const bool data_ended = rounds_.data_ended();
  const bool empty = rounds_.drawn() == 0;  // the data ended exactly between two iterations
  in_iteration_ = false;
  if (!path_.plan.measures()) data_ended_ = data_ended;
  if (empty && !path_.plan.measures()) {
    --iteration_.index;  // no such iteration: others may have it
    follows_ = true;
    return state_.progress.follow(index_, iteration_.index + 1);
  }
  turn_to(*parts_.source);
  if (state_.checkpointer != nullptr) state_.checkpointer->source_ended(iteration_.index);
  end_host(*parts_.source);
  turn_to(maker_);
  if (rollout_ != nullptr) {
    record_pool();
    if (path_.plan.measures())
      parts_.rollout->metrics().value(metrics::kPolicyVersion, static_cast<double>(iteration_.policy_version));
    end_host(*parts_.rollout);
  }
  hand_on_end();
  if (!data_ended_) return;
  follows_ = true;
  state_.progress.follow(index_, iteration_.index + 1);
}

void Intake::end_host(StageHost& host) {
  host.end(iteration_);
  host.save(iteration_);
  host.announce_end(iteration_);
}

void Intake::hand_on_end() {
  state_.progress.end(index_, iteration_.index);
  packing_.end(iteration_);
  tell_samplers(/*has_groups=*/false);
  path_.version_wanted.reach(path_.plan.version_for(iteration_.index + 1));
}

// Of a run that has failed those that sample hear as a failure: that all is done is not so.
void Intake::leave_run() {
  path_.version_wanted.abandon();
  if (helping_) parts_.help->owner().leave(index_);
  if (!state_.stopping()) tell_samplers(/*has_groups=*/false);
  state_.progress.finish(index_);
}

Intake::Wait Intake::waiting() const {
  const int64_t next = seen_iteration_ + 1;
  if (take_over_ && take_over_->waits_for_rank() >= 0) return Wait::kOtherRank;
  if (!admits() && admission_.waits_for_tokens() > 0) return Wait::kOtherRank;
  if (admission_.waits_for_tokens() > 0 || (take_over_ && take_over_->waits_for_tokens() > 0)) return Wait::kCredit;
  if (seen_undecided_) return Wait::kVerdicts;
  if (seen_in_iteration_ || next >= state_.iterations) return Wait::kNothing;
  if (path_.plan.is_due(next, state_.plan.pipeline.iterations) && !has_version(path_.plan.version_for(next)))
    return Wait::kVersion;
  return next >= state_.log.reported() + state_.most_open_iterations() ? Wait::kReports : Wait::kNothing;
}

std::string Intake::waits_for() const {
  const int64_t iteration = seen_iteration_;
  switch (waiting()) {
    case Wait::kNothing:
      return {};
    case Wait::kOtherRank:
      if (take_over_ && take_over_->waits_for_rank() >= 0) return take_over_->waits_for();
      return "a rank of role '" + state_.plan.sampling_role().name + "' to ask for its next group";
    case Wait::kCredit:
      return take_over_ && take_over_->waits_for_tokens() > 0 ? take_over_->waits_for() : admission_.waits_for();
    case Wait::kVerdicts:
      return "the verdicts of filter '" + state_.plan.nodes[static_cast<size_t>(*path_.plan.refill)].name + "' on iteration " +
             std::to_string(iteration);
    case Wait::kVersion:
      return waits_for_version(iteration + 1);
    case Wait::kReports:
      return "iteration " + std::to_string(state_.log.reported()) + " to be ended by every node";
  }
  return {};
}

}  // namespace sluice::engine
