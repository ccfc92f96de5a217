#include <algorithm>

#include "tests/engine/search/path_rules.h"

// Credit on demand: groups are admitted with some tokens and take the rest as they grow, and the youngest give way. A rank that
// makes groups for others has them in the order of their age, too. Those that are finished there wait until their owner takes
// them over, and others cannot wait for that: their credit is given up where a group that is being made needs it.
namespace sluice::engine::testing::machine {

// The oldest without credit may restart; one with credit may grow if there is room once all younger ones have given way.
void PathRules::add_growth(const State& state, std::vector<Move>& moves) const {
  if (!machine_.on_demand) return;
  if (machine_.owners > 0) return add_growth_for_others(state, moves);
  int room = share_ - in_flight(state);
  for (size_t g = state.admitted.size(); g-- > 0;) {
    const Admitted& group = state.admitted[g];
    const bool is_next = group.text > 0 && (g == 0 || state.admitted[g - 1].text == 0);
    if (is_next && group.text <= room) moves.push_back({.kind = Move::Kind::kRestart, .which = static_cast<int>(g)});
    if (group.text == 0 && group.tokens < machine_.worst && room > 0)
      moves.push_back({.kind = Move::Kind::kGrow, .which = static_cast<int>(g)});
    room += group.tokens;
  }
}

// For the oldest that is not finished there is also what the finished ones hold.
void PathRules::add_growth_for_others(const State& state, std::vector<Move>& moves) const {
  int room = room_to_admit(state);
  const auto oldest =
      std::find_if(state.for_others.begin(), state.for_others.end(), [](const auto& group) { return !group.finished; });
  const auto first_without = std::find_if(oldest, state.for_others.end(), [](const auto& group) { return group.text > 0; });
  for (auto group = state.for_others.end(); group-- != state.for_others.begin();) {
    if (group->finished) continue;
    const int most = room + (group == oldest ? room_that_is_given_up(state) : 0);
    const auto which = static_cast<int>(state.admitted.size()) + static_cast<int>(group - state.for_others.begin());
    if (group == first_without && group->text <= most) moves.push_back({.kind = Move::Kind::kRestart, .which = which});
    if (group->text == 0 && group->tokens < machine_.worst && most > 0)
      moves.push_back({.kind = Move::Kind::kGrow, .which = which});
    room += group->tokens;
  }
}

// What finished groups hold.
int PathRules::room_that_is_given_up(const State& state) const {
  int tokens = 0;
  for (const ForOther& group : state.for_others) tokens += group.finished ? group.credit() : 0;
  return machine_.on_demand && machine_.gives_up ? tokens : 0;
}

// By one token; the youngest give way.
void PathRules::grow(State& state, size_t which) const {
  if (which >= state.admitted.size()) return grow_for_other(state, which - state.admitted.size());
  for (size_t g = state.admitted.size(); in_flight(state) == share_ && g-- > which + 1;) {
    Admitted& group = state.admitted[g];
    if (group.tokens > 0) group = {.tokens = 0, .text = group.tokens, .slot = group.slot};
  }
  ++state.admitted[which].tokens;
}

void PathRules::grow_for_other(State& state, size_t which) const {
  make_room(state, 1, which);
  ++state.for_others[which].tokens;
}

void PathRules::restart(State& state, size_t which) const {
  if (which >= state.admitted.size()) {
    which -= state.admitted.size();
    ForOther& group = state.for_others[which];
    make_room(state, group.text, which);
    group.tokens = group.text, group.text = 0;
    return;
  }
  Admitted& group = state.admitted[which];
  group = {.tokens = group.text, .slot = group.slot};
}

// The youngest give way, and after them what is finished.
void PathRules::make_room(State& state, int tokens, size_t younger_than) const {
  for (size_t g = state.for_others.size(); room_to_admit(state) < tokens && g-- > younger_than + 1;) {
    ForOther& group = state.for_others[g];
    if (!group.finished && group.tokens > 0) group.text = group.tokens, group.tokens = 0;
  }
  if (room_to_admit(state) >= tokens) return;
  for (ForOther& group : state.for_others) group.given_up = group.given_up || group.finished;
}

bool PathRules::some_lack_credit(const State& state) const {
  return std::any_of(state.for_others.begin(), state.for_others.end(), [](const auto& group) { return group.text > 0; });
}

// While some have no credit that should have it nothing else is admitted.
bool PathRules::may_help(const State& state, int tokens) const {
  if (!machine_.on_demand) return room_to_admit(state) >= room_to_help();
  const bool some_gave_up =
      std::any_of(state.for_others.begin(), state.for_others.end(), [](const auto& group) { return group.given_up; });
  if (some_gave_up || some_lack_credit(state)) return false;
  return room_to_admit(state) >= tokens + room_to_help() - machine_.worst;
}

}  // namespace sluice::engine::testing::machine
