#include <algorithm>

#include "tests/engine/search/path_rules.h"

// From the admission of groups to the packer. A path that shares its making holds credit of a budget of its own up to there, and
// of its share from there on.
namespace sluice::engine::testing::machine {

Move other_half(const Move& mine, int rank) {
  using Kind = Move::Kind;
  const Kind kind = mine.kind == Kind::kLend ? Kind::kHelp : mine.kind == Kind::kLendAgain ? Kind::kHelpAgain : Kind::kGive;
  return {.kind = kind, .which = mine.which, .tokens = mine.tokens, .packet = mine.packet, .with = rank};
}

bool is_helpers_half(const Move& move) {
  return move.kind == Move::Kind::kHelp || move.kind == Move::Kind::kHelpAgain || move.kind == Move::Kind::kGive;
}

int PathRules::in_making(const State& state) const {
  int tokens = 0;
  for (const Admitted& group : state.admitted) tokens += group.tokens;
  for (const ForOther& group : state.for_others) tokens += group.credit();
  return tokens;
}

int PathRules::room_to_admit(const State& state) const {
  return shares_making_ ? making_ - in_making(state) : share_ - in_flight(state);
}

void PathRules::add_admissions(const State& state, std::vector<Move>& moves) const {
  const bool short_of_credit = !state.admitted.empty() && state.admitted.back().text > 0;
  if (state.left_to_draw() == 0 || short_of_credit) return;
  for (int tokens = std::min(machine_.worst, room_to_admit(state)); tokens >= machine_.least; --tokens)
    moves.push_back({.kind = Move::Kind::kAdmit, .tokens = tokens});
}

// The next group is of the first slot that draws one.
void PathRules::admit(State& state, Admitted group) const {
  const auto left = std::find_if(state.to_draw.begin(), state.to_draw.end(), [](int groups) { return groups > 0; });
  group.slot = static_cast<int>(left - state.to_draw.begin());
  --*left;
  ++state.drawn;
  ++state.drawn_of[static_cast<size_t>(group.slot)];
  state.admitted.push_back(group);
  pack(state);
}

void PathRules::add_finishes(const State& state, std::vector<Move>& moves) const {
  const auto add = [&](size_t which, int credit) {
    for (int tokens = credit; tokens >= 1; --tokens)
      moves.push_back({.kind = Move::Kind::kFinish, .which = static_cast<int>(which), .tokens = tokens});
  };
  for (size_t g = 0; g < state.for_others.size(); ++g) {
    if (!state.for_others[g].finished) add(state.admitted.size() + g, state.for_others[g].tokens);
  }
  for (size_t g = 0; g < state.admitted.size(); ++g) {
    const Admitted& group = state.admitted[g];
    if (group.finished || group.maker >= 0) continue;
    if (machine_.on_demand && g > 0) return;  // handed on in order
    add(g, group.tokens);
  }
}

void PathRules::finish(State& state, const Move& move) const {
  const auto which = static_cast<size_t>(move.which);
  if (which >= state.admitted.size()) {
    ForOther& group = state.for_others[which - state.admitted.size()];
    group.tokens = move.tokens, group.finished = true;
    return;
  }
  Admitted& group = state.admitted[which];
  group = {.tokens = move.tokens, .finished = true, .slot = group.slot};
  pack(state);
}

// What a rank may lend depends on when it takes over groups of its own, unless the rest of the round fits anyway. Where it does
// not, they are taken over at once, which makes fewer states.
void PathRules::take_what_fits(State& state) const {
  if (!shares_making_) return;
  if (machine_.help == Help::kWhereShort && room_to_admit(state) < state.left_to_draw() * machine_.worst) return;
  while (!state.admitted.empty() && state.admitted.front().finished && state.admitted.front().tokens <= share_ - in_flight(state))
    take(state, state.admitted.front().tokens);
}

// With whoever makes the oldest group if this rank does not. Only the maker knows its size.
void PathRules::add_takes(const State& state, std::vector<Move>& moves) const {
  if (!shares_making_ || state.admitted.empty()) return;
  const Admitted& oldest = state.admitted.front();
  const int room = share_ - in_flight(state);
  if (oldest.maker == Admitted::kMine) {
    if (oldest.finished && oldest.tokens <= room) moves.push_back({.kind = Move::Kind::kTake, .tokens = oldest.tokens});
    return;
  }
  if (oldest.maker == Admitted::kNobody) return;
  for (int tokens = std::min(machine_.worst, room); tokens >= 1; --tokens)
    moves.push_back({.kind = Move::Kind::kTake, .tokens = tokens, .with = oldest.maker});
}

void PathRules::take(State& state, int tokens) const {
  state.admitted.front().tokens = tokens;
  pack_oldest(state);
  end_packing(state);
}

// What this rank can do of moves of two ranks, whatever the other one is at.
void PathRules::add_help(const State& state, std::vector<Move>& moves) const {
  if (!shares_making_) return;
  const int room = room_to_admit(state);
  const bool anytime = machine_.help != Help::kWhereShort;
  for (int other = 0; other < machine_.ranks; ++other) {
    if (other == machine_.rank) continue;
    for (int tokens = machine_.worst; tokens >= machine_.least; --tokens) {
      if (state.left_to_draw() > 0 && (anytime || tokens > room))
        moves.push_back({.kind = Move::Kind::kLend, .tokens = tokens, .with = other});
      if ((anytime || state.left_to_draw() == 0) && may_help(state, tokens))
        moves.push_back({.kind = Move::Kind::kHelp, .tokens = tokens, .with = other});
    }
    const auto next =
        std::find_if(state.for_others.begin(), state.for_others.end(), [&](const auto& g) { return g.owner == other; });
    if (next != state.for_others.end() && next->finished)
      moves.push_back({.kind = Move::Kind::kGive, .tokens = next->tokens, .with = other});
  }
}

void PathRules::help(State& state, const Move& move) const {
  const auto behind =
      std::find_if(state.for_others.begin(), state.for_others.end(), [&](const auto& g) { return g.owner > move.with; });
  state.for_others.insert(behind, {.owner = move.with, .tokens = move.tokens});
}

void PathRules::give(State& state, int owner) const {
  state.for_others.erase(
      std::find_if(state.for_others.begin(), state.for_others.end(), [&](const auto& g) { return g.owner == owner; }));
}

void PathRules::cut(State& state) const {
  if (state.open.empty()) return;
  Packet& packet = state.packets.emplace_back(Packet{.iteration = state.begun - 1, .slot = state.open_slot});
  for (const int size : state.open) packet.parts.push_back({.tokens = size});
  state.open.clear();
}

// What is finished goes on at once, or is taken over by moves of its own.
void PathRules::pack(State& state) const {
  if (shares_making_) return;
  while (!state.admitted.empty() && state.admitted.front().finished) pack_oldest(state);
  end_packing(state);
}

void PathRules::pack_oldest(State& state) const {
  const Admitted& group = state.admitted.front();
  if (group.slot != state.open_slot) cut(state);
  state.open_slot = group.slot;
  state.open.push_back(group.tokens);
  state.admitted.erase(state.admitted.begin());
  int tokens = machine_.worst;
  for (const int size : state.open) tokens += size;
  if (tokens > micro_batch_) cut(state);
}

void PathRules::end_packing(State& state) const {
  if (state.left_to_draw() > 0 || !state.admitted.empty()) return;
  cut(state);
  go_on(state);
}

}  // namespace sluice::engine::testing::machine
