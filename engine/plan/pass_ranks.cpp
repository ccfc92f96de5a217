#include "engine/plan/pass_ranks.h"

#include <algorithm>

#include "base/error.h"

namespace sluice::engine {
namespace {

// Which of those that lead it is, or is led by.
int leader_of(const Plan& plan, int rank) {
  return plan.assists(rank) ? (rank - plan.scheduling_ranks()) / (plan.pass_ranks() - 1) : rank;
}

}  // namespace

std::vector<int> pass_ranks_of(const Plan& plan, int rank) {
  SLUICE_CHECK(plan.trains(rank) || plan.assists(rank), "a rank that computes no passes with others");
  const int leader = leader_of(plan, rank), assistants = plan.pass_ranks() - 1;
  std::vector<int> ranks{leader};
  for (int i = 0; i < assistants; ++i) ranks.push_back(plan.scheduling_ranks() + leader * assistants + i);
  return ranks;
}

int pass_place_of(const Plan& plan, int rank) {
  const std::vector<int> group = pass_ranks_of(plan, rank);
  return static_cast<int>(std::ranges::find(group, rank) - group.begin());
}

World trainers_of(const Plan& plan, int rank) {
  return {.rank = pass_ranks_of(plan, rank).front() * plan.pass_ranks() + pass_place_of(plan, rank),
          .size = plan.training_ranks(),
          .slots = static_cast<int>(plan.slots()) * plan.pass_ranks()};
}

}  // namespace sluice::engine
