#include <algorithm>
#include <cstddef>

#include "tests/engine/search/path_rules.h"

// Ranks that make groups for others may be lost, all but one. What a lost one was to make is made by another one, with the room
// that each keeps for that.
namespace sluice::engine::testing::machine {

// Of a group that no rank had before.
int PathRules::room_to_help() const {
  return machine_.elastic && machine_.keeps_room && machine_.is_sampler() ? 2 * machine_.worst : machine_.worst;
}

void PathRules::add_losses(const State& state, std::vector<Move>& moves) const {
  if (!machine_.elastic) return;
  if (machine_.is_sampler()) moves.push_back({.kind = Move::Kind::kLose});
  for (int rank = machine_.owners; rank < machine_.ranks && !machine_.is_sampler(); ++rank)
    if ((state.heard >> rank & 1) == 0) moves.push_back({.kind = Move::Kind::kHear, .which = rank});
  add_again(state, moves);
}

// Who has room for it beside the one that it keeps takes any of them; with that room alone it takes the next that is taken
// over.
void PathRules::add_again(const State& state, std::vector<Move>& moves) const {
  const auto add = [&](Move::Kind kind, int which, int place, int with) {
    for (int tokens = machine_.worst; tokens >= machine_.least; --tokens)
      moves.push_back({.kind = kind, .which = which, .tokens = tokens, .packet = place, .with = with});
  };
  if (machine_.is_sampler()) {
    if (machine_.on_demand && some_lack_credit(state)) return;
    const int room = room_to_admit(state);
    for (int owner = 0; owner < machine_.owners; ++owner) {
      const auto made = std::count_if(state.for_others.begin(), state.for_others.end(),
                                      [&](const ForOther& group) { return group.owner == owner; });
      for (int place = 0; place <= made; ++place) {
        if (room + room_that_is_given_up(state) >= machine_.worst) add(Move::Kind::kHelpAgain, 0, place, owner);
        if (room >= room_to_help()) add(Move::Kind::kHelpAgain, 1, place, owner);
      }
    }
    return;
  }
  const auto first = std::find_if(state.admitted.begin(), state.admitted.end(),
                                  [](const Admitted& group) { return group.maker == Admitted::kNobody; });
  if (first == state.admitted.end()) return;
  for (int rank = machine_.owners; rank < machine_.ranks; ++rank) {
    const auto before = std::count_if(state.admitted.begin(), first, [&](const Admitted& group) { return group.maker == rank; });
    add(Move::Kind::kLendAgain, first == state.admitted.begin() ? 0 : 1, static_cast<int>(before), rank);
  }
}

bool PathRules::may_make_again(const State& state, int iteration) const {
  if (state.begun - 1 <= iteration) return state.begun - 1 == iteration;
  return std::all_of(state.for_others.begin(), state.for_others.end(), [](const ForOther& group) { return group.finished; });
}

// Nobody waits for it any more.
State PathRules::lost() const {
  State state;
  state.lost = true;
  state.begun = state.ended = iterations_;
  return state;
}

void PathRules::hear(State& state, int rank) const {
  state.heard |= 1u << rank;
  for (Admitted& group : state.admitted)
    if (group.maker == rank) group.maker = Admitted::kNobody;
}

void PathRules::lend_again(State& state, int maker) const {
  std::find_if(state.admitted.begin(), state.admitted.end(), [](const Admitted& group) {
    return group.maker == Admitted::kNobody;
  })->maker = maker;
}

// Those for one owner are in the order in which it takes them over.
void PathRules::help_again(State& state, const Move& move) const {
  auto at = std::find_if(state.for_others.begin(), state.for_others.end(),
                         [&](const ForOther& group) { return group.owner >= move.with; });
  make_room(state, move.tokens, state.for_others.size());
  state.for_others.insert(at + move.packet, {.owner = move.with, .tokens = move.tokens});
}

}  // namespace sluice::engine::testing::machine
