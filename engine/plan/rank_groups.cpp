#include "engine/plan/rank_groups.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace sluice::engine {
namespace {

// Groups of one kind: their leaders are next to each other, and so are all who assist them, those of a group too.
struct Groups {
  int first_leader = 0;
  int first_assistant = 0;
  int size = 1;  // of each, with the one that leads

  int leader_of(int rank) const { return rank < first_assistant ? rank : first_leader + (rank - first_assistant) / (size - 1); }
  int assistant(int leader, int place) const { return first_assistant + (leader - first_leader) * (size - 1) + place - 1; }
};

Groups groups_with(const RankLayout& layout, int rank) {
  const bool samples_for_others = layout.has_roles() && !layout.holds_trained(rank);
  if (samples_for_others)
    return {.first_leader = layout.owners(), .first_assistant = layout.scheduling_ranks(), .size = layout.sampling_ranks()};
  const int first = layout.has_roles() ? layout.owners() + layout.sampling_role().ranks : layout.scheduling_ranks();
  return {.first_leader = 0, .first_assistant = first, .size = layout.pass_ranks()};
}

// Of `count` things dealt out in blocks to `among`, those of one of these.
RankRange block_of(int count, int among, int index) {
  const int begin = index * count / among, end = (index + 1) * count / among;
  return {.first = begin, .count = end - begin};
}

std::vector<int> numbers_of(const RankRange& range, int first) {
  std::vector<int> numbers(static_cast<size_t>(range.count));
  std::iota(numbers.begin(), numbers.end(), first + range.first);
  return numbers;
}

// Of `many` things that are dealt out to `few`, whose block one of them is in.
int owner_of_block(int many, int few, int index) {
  SLUICE_CHECK(0 <= index && index < many, "a rank of another role");
  int of = 0;
  while (!block_of(many, few, of).has(index)) ++of;
  return of;
}

}  // namespace

std::vector<int> forward_peers(const RankLayout& layout, int rank, const PlanRole& role) {
  const bool asks = layout.trains(rank);
  const int own = asks ? layout.owners() : role.ranks, others = asks ? role.ranks : layout.owners();
  const int index = asks ? rank : rank - role.first_rank, first_other = asks ? role.first_rank : 0;
  if (others >= own) return numbers_of(block_of(others, own, index), first_other);
  return {first_other + owner_of_block(own, others, index)};
}

std::vector<int> group_of(const RankLayout& layout, int rank) {
  if (layout.forwards(rank)) return {rank};
  const Groups groups = groups_with(layout, rank);
  const int leader = groups.leader_of(rank);
  std::vector<int> ranks{leader};
  for (int place = 1; place < groups.size; ++place) ranks.push_back(groups.assistant(leader, place));
  return ranks;
}

int place_in_group(const RankLayout& layout, int rank) {
  const std::vector<int> group = group_of(layout, rank);
  return static_cast<int>(std::ranges::find(group, rank) - group.begin());
}

World trainers_of(const RankLayout& layout, int rank) {
  SLUICE_CHECK(layout.holds_trained(rank), "a rank that holds nothing that is trained");
  return {.rank = group_of(layout, rank).front() * layout.pass_ranks() + place_in_group(layout, rank),
          .size = layout.training_ranks(),
          .slots = static_cast<int>(layout.slots()) * layout.pass_ranks()};
}

SharingRanks sharing_with(const RankLayout& layout, int rank) {
  // Those that hold what is trained, in the order of their numbers in the run.
  const int leaders = layout.owners(), between = layout.has_roles() ? layout.sampling_role().ranks : 0,
            count = layout.shard_ranks();
  const int index = rank < leaders ? rank : rank - between;
  const auto number = [&](int of) { return of < leaders ? of : of + between; };
  SharingRanks sharing{.place = index % count, .members = {}, .group = index / count, .counterparts = {}};
  for (int place = 0; place < count; ++place) sharing.members.push_back(number(sharing.group * count + place));
  for (int group = 0; group < layout.shard_groups(); ++group)
    sharing.counterparts.push_back(trainers_of(layout, number(group * count + sharing.place)).rank);
  return sharing;
}

SharingRanks sampling_beside(const RankLayout& layout, int rank, const std::vector<int>& hosts) {
  if (layout.sampling_ranks() > 1 || layout.expendable().any()) return {.members = {rank}};
  SharingRanks sharing{.members = layout.receivers()};
  std::erase_if(sharing.members,
                [&](int other) { return hosts.at(static_cast<size_t>(other)) != hosts.at(static_cast<size_t>(rank)); });
  const auto own = std::ranges::find(sharing.members, rank);
  SLUICE_CHECK(own != sharing.members.end(), "a rank that samples from no version");
  sharing.place = static_cast<int>(own - sharing.members.begin());
  return sharing;
}

}  // namespace sluice::engine
