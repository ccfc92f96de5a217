#include "engine/plan/rank_layout.h"

#include <algorithm>
#include <numeric>

namespace sluice::engine {

std::vector<const PlanRole*> RankLayout::all_roles() const {
  std::vector<const PlanRole*> all;
  if (whole) all.push_back(&*whole);
  for (const PlanRole& role : roles) all.push_back(&role);
  for (const PlanRole& role : forward_roles) all.push_back(&role);
  return all;
}

int RankLayout::forward_ranks() const {
  int count = 0;
  for (const PlanRole& role : forward_roles) count += role.ranks;
  return count;
}

const PlanRole* RankLayout::role_of(int rank) const {
  for (const PlanRole& role : forward_roles) {
    if (role.first_rank <= rank && rank < role.first_rank + role.ranks) return &role;
  }
  if (!has_roles()) return whole ? &*whole : nullptr;
  return holds_trained(rank) ? &training_role() : &sampling_role();
}

std::vector<int> RankLayout::receivers() const {
  std::vector<int> ranks(has_roles() ? static_cast<size_t>(sampling_role().ranks) : 0);
  std::iota(ranks.begin(), ranks.end(), owners());
  return ranks;
}

RankRange RankLayout::expendable() const {
  const bool is_elastic = has_roles() && sampling_role().elastic;
  return is_elastic ? RankRange{.first = owners(), .count = samplers()} : RankRange();
}

bool RankLayout::is_forward(const std::string& executor) const {
  return std::ranges::any_of(forward_roles, [&](const PlanRole& role) { return executor.starts_with(role.name + "/"); });
}

bool RankLayout::has_executor(int rank, const std::string& name) const {
  if (is_forward(name)) return trains(rank);
  const PlanRole* const role = role_of(rank);
  return role == nullptr || name.starts_with(role->name + "/");
}

}  // namespace sluice::engine
