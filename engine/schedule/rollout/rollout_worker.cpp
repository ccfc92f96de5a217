#include "engine/schedule/rollout/rollout_worker.h"

#include <algorithm>
#include <utility>

#include "engine/plan/saturating.h"

namespace sluice::engine {
namespace {

// What a sample may ask for after its prompt, whatever its contract says: a simulated one does not know it.
constexpr int64_t kUsualRoom = 17;

// A rollout that does not say how long prompts are may take all at once.
AdmissionRules worker_rules(const Plan& plan, const PlanNode& rollout) {
  const NodeNeeds& needs = rollout.needs;
  const int64_t most = plan.paths[static_cast<size_t>(rollout.path)].capacity.group_tokens,
                of_prompt = needs.shared_prompt_tokens;
  AdmissionRules rules{.most_tokens = most, .on_demand = plan.takes_on_demand(rollout), .first_tokens = most, .in_order = false};
  if (of_prompt == 0 || needs.worst_sample_tokens == 0) return rules;
  const int64_t samples = most / needs.worst_sample_tokens;
  rules.first_tokens =
      std::min(most, saturating_product(samples, saturating_sum(of_prompt, std::max(needs.on_demand_tokens, kUsualRoom))));
  return rules;
}

}  // namespace

RolloutWorker::RolloutWorker(RunState& state, Parts parts, std::function<void()> finished)
    : PathHead(state, parts.path, *parts.rollout, worker_rules(state.plan, parts.rollout->plan()), parts.begun,
               std::move(finished)),
      parts_(std::move(parts)),
      on_demand_(state.plan.takes_on_demand(maker_.plan())),
      ended_(parts_.begun) {}

// Another one only when nothing of this one is being made. Those before the first are for ranks that were there before.
bool RolloutWorker::may_enter(int64_t iteration) const {
  return iteration >= parts_.begun && has_version_for(iteration) && (iteration == at_ || owners_of_.empty());
}

std::optional<OwnersSeen::Offer> RolloutWorker::next_offer() const {
  const std::optional<OwnersSeen::Offer> offer = parts_.owners.next(index_);
  if (offer && may_enter(offer->round.iteration) && has_room()) return offer;
  const std::optional<OwnersSeen::Offer> again = parts_.may_be_lost ? parts_.owners.next_again(index_) : std::nullopt;
  return again && may_enter(again->round.iteration) && has_room_again() ? again : std::nullopt;
}

// On demand.
bool RolloutWorker::may_make_more() const {
  const int64_t groups = std::ssize(owners_of_) + 1;
  return saturating_product(groups, path_.plan.capacity.group_tokens) <= kBudgetsInTheMaking * path_.budget->capacity();
}

// The room that is kept is for what a lost rank was to make; on demand what is there already gives way.
bool RolloutWorker::has_room() const {
  if (on_demand_) return may_make_more() && admission_.can_reserve() && !parts_.asker.has_given_up_credit(index_);
  return parts_.may_be_lost ? admission_.can_reserve_beside() : admission_.can_reserve();
}

bool RolloutWorker::has_room_again() const {
  if (!on_demand_) return admission_.can_reserve();
  return may_make_more() && (admission_.can_reserve() || parts_.asker.has_credit(index_));
}

bool RolloutWorker::ready() {
  if (has_finished()) return false;
  if (state_.stopping() || parts_.owners.is_over(index_) || parts_.owners.floor(index_) > ended_) return true;
  return parts_.asker.has_answer(index_) || (!rollout_->idle() && !waits_for_credit()) || may_ask();
}

void RolloutWorker::show() {
  if (at_ >= 0) seen_iteration_ = at_;
  seen_idle_ = rollout_->idle();
  if (index_ == state_.main_path && waiting() == Wait::kVersion)
    state_.arrivals.await(path_.plan.version_for(seen_iteration_ + 1), state_.clock.now_ns());
}

// Where all owners need nothing any more, what is in the making is dropped.
void RolloutWorker::take_in() {
  const bool is_over = parts_.owners.is_over(index_);  // before iterations are ended, so that all are
  end_iterations();
  if (is_over) return finish_run();
  take_answer();
  if (may_ask()) ask();
}

void RolloutWorker::ask() {
  asked_ = next_offer();
  if (!asked_) return;
  if (!admission_.can_reserve()) parts_.asker.give_up_credit(index_);
  auto credit = admission_.reserve();
  if (!credit) return asked_.reset();
  asked_with_ = std::move(*credit);
  parts_.asker.ask(index_, asked_->owner, asked_->round, asked_->only_again);
}

void RolloutWorker::take_answer() {
  std::optional<GroupAsker::Answer> answer = parts_.asker.take_answer(index_);
  if (!answer) return;
  asked_.reset();
  Credit credit = std::exchange(asked_with_, {});
  if (!answer->group) return;
  Group& prompt = *answer->group;
  enter(prompt.iteration);
  if (!rollout_->wants(prompt))
    return parts_.asker.decline(index_, answer->owner, prompt.iteration, prompt.index, maker_.metrics().contribution());
  owners_of_.emplace(prompt.index, answer->owner);
  admission_.admit(prompt, *rollout_, std::move(credit));
  ++slice_.groups;
  rollout_->start(std::move(prompt));
}

void RolloutWorker::bring_out() {
  if (rollout_->idle() || waits_for_credit()) return;
  for (RolloutSink::Finished& finished : step_rollout(&maker_.metrics())) give_back(std::move(finished.group), finished.metrics);
  if (waits_for_credit()) parts_.asker.give_up_credit(index_);
}

void RolloutWorker::give_back(Group group, const Contribution& metrics) {
  Credit credit = settle(group);
  ++made_;
  parts_.asker.give_back(index_, owners_of_.extract(group.index).mapped(), group, std::move(credit), metrics);
}

void RolloutWorker::enter(int64_t iteration) {
  if (at_ == iteration) return;
  leave();
  at_ = iteration;
  begin_maker({.index = iteration, .policy_version = path_.plan.version_for(iteration)});
}

void RolloutWorker::leave() {
  if (at_ < 0) return;
  record_pool();
  maker_.end({.index = at_, .policy_version = path_.plan.version_for(at_)});
  add_contribution(beside_[at_], maker_.metrics().contribution());
  at_ = -1;
}

void RolloutWorker::end_iterations() {
  for (const int64_t floor = parts_.owners.floor(index_); ended_ < floor; ++ended_) {
    if (at_ == ended_) leave();
    auto recorded = beside_.extract(ended_);
    parts_.progress.ended(index_, ended_, recorded ? std::move(recorded.mapped()) : Contribution());
  }
}

PathHead::Wait RolloutWorker::waiting() const {
  if (!seen_idle_) return Wait::kNothing;
  const int64_t next = seen_iteration_ + 1;
  return parts_.owners.have_given_all_before(index_, next) && !has_version_for(next) ? Wait::kVersion : Wait::kOtherRank;
}

std::string RolloutWorker::waits_for() const {
  switch (waiting()) {
    case Wait::kVersion:
      return waits_for_version(seen_iteration_ + 1);
    case Wait::kOtherRank:
      return "a rank of role '" + state_.plan.training_role().name + "' to give it a group to make";
    default:
      return {};
  }
}

}  // namespace sluice::engine
