#include "engine/memory/memory_needs.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::engine {
namespace {

void add_needs(std::vector<MemoryNeed>& needs, const MemoryNeed& of_host, const std::vector<PlanDevice>& devices) {
  needs.push_back(of_host);
  for (const PlanDevice& device : devices) {
    needs.push_back(of_host);
    needs.back().memory = device.memory;
    needs.back().place = device.name;
  }
}

const PlanRole* role_named(const Plan& plan, const std::string& name) {
  const std::vector<const PlanRole*> roles = plan.all_roles();
  const auto found = std::ranges::find_if(roles, [&](const PlanRole* role) { return role->name == name; });
  return found == roles.end() ? nullptr : *found;
}

bool is_tighter(const MemoryNeed& a, const MemoryNeed& b) {
  return std::pair(a.share(), a.memory.total_bytes()) > std::pair(b.share(), b.memory.total_bytes());
}

}  // namespace

double MemoryNeed::share() const {
  return is_known() ? static_cast<double>(memory.total_bytes()) / static_cast<double>(memory.machine_bytes) : 0;
}

std::vector<MemoryNeed> memory_needs(const Plan& plan) {
  std::vector<MemoryNeed> needs;
  const std::vector<const PlanRole*> roles = plan.all_roles();
  if (roles.empty()) add_needs(needs, {.memory = plan.memory, .role = {}, .ranks = plan.ranks}, plan.devices);
  for (const PlanRole* const role : roles)
    add_needs(needs, {.memory = role->memory, .role = role->name, .rank = role->first_rank, .ranks = role->ranks}, role->devices);
  return needs;
}

MemoryNeed tightest_need(const Plan& plan) {
  std::vector<MemoryNeed> needs = memory_needs(plan);
  return std::move(*std::ranges::min_element(needs, is_tighter));
}

int64_t tokens_of(const Plan& plan, const MemoryNeed& need) {
  const PlanRole* const role = role_named(plan, need.role);
  return role == nullptr ? plan.budget.tokens_in_flight : role->tokens_in_flight;
}

// Paths with shares of their own keep them. A rank that only samples needs a group.
int64_t least_tokens_of(const Plan& plan, const MemoryNeed& need) {
  if (plan.forwards(need.rank)) return tokens_of(plan, need);  // they change nothing there
  const bool trains = plan.trains(need.rank);
  int64_t needed = 0;
  for (const PlanPath& path : plan.paths) {
    const int64_t least = trains ? path.capacity.tokens_needed : path.rollout ? path.capacity.group_tokens : 0;
    needed += path.settings.tokens_in_flight.value_or(least);
  }
  return needed;
}

int64_t tokens_that_fit(const Plan& plan, const MemoryNeed& need) {
  const auto fits = [&](int64_t tokens) {
    return predict_memory(plan, tokens, need.rank, need.place).total_bytes() <= need.memory.machine_bytes;
  };
  int64_t enough = least_tokens_of(plan, need), too_many = tokens_of(plan, need);
  if (enough >= too_many || !fits(enough)) return 0;
  while (enough + 1 < too_many) {
    const int64_t middle = enough + (too_many - enough) / 2;
    (fits(middle) ? enough : too_many) = middle;
  }
  return enough;
}

std::vector<PassRanks> more_pass_ranks(const Plan& plan) {
  const auto averages = [](const PlanModel& model) { return !model.facts.average_of.empty(); };
  if (std::ranges::any_of(plan.models, averages)) return {};
  int64_t heads = 0;  // the largest number of ranks that divides those of all models
  bool all_on_host = true;
  for (const PlanModel& model : plan.models) {
    if ((!model.usage.updated && !model.usage.read) || plan.forward_role_of(model) != nullptr) continue;
    if (model.facts.key_heads == 0) return {};
    all_on_host &= model.facts.device == kHost;
    heads = std::gcd(heads, model.facts.key_heads);
  }
  std::vector<PassRanks> more;
  for (int ranks = plan.pass_ranks() + 1; ranks <= plan.training_ranks(); ++ranks) {
    const int ring = ranks / static_cast<int>(std::gcd<int64_t>(ranks, heads));
    if (plan.training_ranks() % ranks == 0 && (ring == 1 || all_on_host)) more.push_back({ranks, ring});
  }
  return more;
}

int64_t shared_pass_bytes(const Plan& plan, const PassRanks& ranks, const std::string& place) {
  Plan shared = plan;
  shared.cluster.sequence_parallel = ranks.ranks, shared.cluster.ring = ranks.ring;
  const auto activations = [&](const Plan& of) { return worst_activation_bytes(of, of.training_tokens(), 0, place); };
  return activations(plan) - activations(shared);
}

bool trains_most_of(const PlanModel& model) {
  const int64_t trained = model.facts.gradient_bytes / static_cast<int64_t>(sizeof(float));
  return model.usage.updated && 2 * trained > model.facts.parameters;
}

int64_t training_bytes(const Plan& plan, const PlanModel& model) {
  const int64_t ranks = plan.shards_optimizer() ? plan.training_ranks() : 1;
  const int64_t gradients = model.facts.gradient_bytes;
  const int64_t sums = plan.shards_parameters() ? 2 * gradients / plan.shard_ranks() : gradients;
  return sums + model.facts.optimizer_bytes / ranks;
}

const PlanModel* base_in_place_of(const Plan& plan, const PlanModel& frozen) {
  const ModelFacts& facts = frozen.facts;
  if (frozen.usage.updated || !facts.base_of.empty() || facts.folder.empty() || !facts.has_head("language_model")) return nullptr;
  const auto found = std::ranges::find_if(plan.models, [&](const PlanModel& model) {
    return model.usage.updated && model.facts.trainable && model.facts.folder == facts.folder &&
           model.facts.device == facts.device && model.facts.has_head("language_model");
  });
  return found == plan.models.end() ? nullptr : &*found;
}

}  // namespace sluice::engine
