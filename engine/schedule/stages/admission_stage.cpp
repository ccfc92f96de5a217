#include "engine/schedule/stages/admission_stage.h"

#include <utility>

#include "engine/contract/columns/contract_breach.h"

namespace sluice::engine {

int64_t AdmissionStage::worst_of(const Group& group, const Rollout* rollout) const {
  const int64_t worst = rollout != nullptr ? rollout->worst_tokens(group) : static_cast<int64_t>(group.layout.tokens());
  if (worst < 0 || worst > rules_.most_tokens) {
    throw_contract_breach("group " + std::to_string(group.index) + " may take " + std::to_string(worst) +
                          " tokens; the plan was proven for at most " + std::to_string(rules_.most_tokens));
  }
  return worst;
}

// What the group is admitted with.
int64_t AdmissionStage::first_of(const Group& group, const Rollout* rollout) const {
  const int64_t worst = worst_of(group, rollout);
  if (!rules_.on_demand) return worst;
  const int64_t first = rollout->least_tokens(group);
  if (first < 0 || first > worst) {
    throw_contract_breach("group " + std::to_string(group.index) + " is to be admitted with " + std::to_string(first) +
                          " tokens, and may take " + std::to_string(worst));
  }
  return first;
}

void AdmissionStage::offer(Group group, const Rollout* rollout) {
  waiting_tokens_ = first_of(group, rollout);
  waiting_ = std::move(group);
}

std::optional<Group> AdmissionStage::admit() {
  if (!budget_.try_acquire(waiting_tokens_)) return std::nullopt;
  credit_.emplace(waiting_->index, Credit(budget_, waiting_tokens_));
  return std::exchange(waiting_, std::nullopt);
}

std::optional<Credit> AdmissionStage::reserve() {
  const int64_t tokens = tokens_to_reserve();
  if (!budget_.try_acquire(tokens)) return std::nullopt;
  return Credit(budget_, tokens);
}

void AdmissionStage::admit(const Group& group, const Rollout& rollout, Credit reserved) {
  const int64_t first = first_of(group, &rollout);
  if (first > reserved.tokens()) {
    throw_contract_breach("group " + std::to_string(group.index) + " is to be admitted with " + std::to_string(first) +
                          " tokens; its contract says " + std::to_string(reserved.tokens()) + " at most");
  }
  reserved.give_back(reserved.tokens() - first);
  credit_.emplace(group.index, std::move(reserved));
}

void AdmissionStage::return_credit(int64_t group, int64_t tokens) {
  const auto held = credit_.find(group);
  if (held == credit_.end() || tokens < 0 || tokens > held->second.tokens()) {
    throw_contract_breach("it returns " + std::to_string(tokens) + " tokens of credit of group " + std::to_string(group) +
                          ", which it does not hold");
  }
  held->second.give_back(tokens);
}

bool AdmissionStage::take_credit(int64_t group, int64_t tokens) {
  const auto held = credit_.find(group);
  if (held == credit_.end() || tokens < 0 || tokens > rules_.most_tokens - held->second.tokens()) {
    throw_contract_breach("it takes " + std::to_string(tokens) + " tokens of credit for group " + std::to_string(group) +
                          ", which it was not given or which has the most already");
  }
  if (held->second.try_grow(tokens)) return true;
  refused_tokens_ = tokens;
  return false;
}

void AdmissionStage::settle(const Group& group) {
  const auto held = credit_.find(group.index);
  if (held == credit_.end())
    throw_contract_breach("it finishes group " + std::to_string(group.index) + ", which it was not given");
  const auto tokens = static_cast<int64_t>(group.layout.tokens());
  if (tokens > held->second.tokens()) {
    throw_contract_breach("group " + std::to_string(group.index) + " has " + std::to_string(tokens) + " tokens, its credit was " +
                          std::to_string(held->second.tokens()));
  }
  if (rules_.on_demand && rules_.in_order && group.index < last_finished_) {
    throw_contract_breach("it finishes group " + std::to_string(last_finished_) + " before group " + std::to_string(group.index) +
                          ", though credit is taken on demand");
  }
  last_finished_ = group.index;
  held->second.give_back(held->second.tokens() - tokens);
}

Credit AdmissionStage::hand_over(int64_t group) { return std::move(credit_.extract(group).mapped()); }

std::string AdmissionStage::waits_for() const {
  return std::to_string(waits_for_tokens()) + " tokens of credit: " + std::to_string(budget_.in_flight()) + " of " +
         std::to_string(budget_.capacity()) + " are in flight";
}

AdmissionStage::Groups AdmissionStage::admitted() const {
  if (credit_.empty()) return {};
  return {credit_.begin()->first, credit_.rbegin()->first};
}

}  // namespace sluice::engine
