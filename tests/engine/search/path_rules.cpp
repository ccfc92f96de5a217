#include "tests/engine/search/path_rules.h"

#include <algorithm>

namespace sluice::engine::testing::machine {

PathRules::PathRules(const Machine& machine, int iterations, bool trained, int share)
    : machine_(machine),
      iterations_(iterations),
      share_(share),
      micro_batch_(machine.own_share ? std::max(machine.worst, std::min(machine.micro_batch, share)) : machine.micro_batch),
      shares_making_(machine.rollout && (!machine.on_demand || machine.owners > 0) && machine.ranks > 1 && !machine.measures()),
      samples_(machine.rollout && trained && !machine.of_frozen_model) {
  for (size_t s = 0; s < machine.steps.size(); ++s) {
    const Step& step = machine.steps[s];
    unsigned filters = 0;
    for (const int input : step.inputs) filters |= filters_[static_cast<size_t>(input)] | (is_filter(input) ? bit(input) : 0);
    filters_.push_back(filters);
    if (step.draws > 1) refill_ = static_cast<int>(s);
    if (step.use == Use::kTrains) trainer_ = static_cast<int>(s);
    if (step.use == Use::kPublishes) publisher_ = static_cast<int>(s);
  }
  int drawn = 0;
  for (int slot = 0; slot < machine.slots; ++slot) drawn += most_drawn(slot);
  making_ = std::min(share, std::max(1, drawn) * machine.worst);
  if (machine.owners > 0) making_ = machine.is_sampler() ? machine.making : 0;
}

std::vector<Move> PathRules::moves(const State& state) const {
  std::vector<Move> moves;
  if (state.lost) return moves;
  for (size_t s = 0; s < machine_.steps.size(); ++s) add_processing(state, static_cast<int>(s), moves);
  add_growth(state, moves);
  add_finishes(state, moves);
  add_takes(state, moves);
  add_admissions(state, moves);
  add_help(state, moves);
  add_losses(state, moves);
  const bool makes =
      std::any_of(state.for_others.begin(), state.for_others.end(), [](const auto& group) { return !group.finished; });
  if (!state.drawing && !makes && state.begun < iterations_) moves.push_back({.kind = Move::Kind::kBegin});
  if (machine_.ranks > 1 && refill_ >= 0 && is_judged(state)) moves.push_back({.kind = Move::Kind::kLearn});
  return moves;
}

// On demand groups are only sure to end when they have grown to the worst size. Nobody has to help, but for ranks that do nothing
// else; these have credit for a worst group or for none. Nobody has to be lost.
bool PathRules::is_sure(const State& state, const Move& move) const {
  if (move.kind == Move::Kind::kLose) return false;
  const bool lends = move.kind == Move::Kind::kLend || move.kind == Move::Kind::kLendAgain;
  if (lends && machine_.owners > 0) return move.tokens == machine_.worst;
  const bool ends_early = move.kind == Move::Kind::kFinish && machine_.on_demand && credit_of(state, move.which) < machine_.worst;
  return move.kind != Move::Kind::kAdmit && move.kind != Move::Kind::kLend && !ends_early;
}

// Of one of its own, or of one for another rank.
int PathRules::credit_of(const State& state, int which) const {
  const auto w = static_cast<size_t>(which), own = state.admitted.size();
  return w < own ? state.admitted[w].tokens : state.for_others[w - own].tokens;
}

// On demand what is admitted goes first: the oldest has to grow.
bool PathRules::has_room(const State& state) const {
  if (machine_.on_demand && !state.admitted.empty()) return false;
  return state.left_to_draw() > 0 && room_to_admit(state) >= machine_.worst;
}

bool PathRules::is_over(const State& state) const {
  return state.begun == iterations_ && !state.drawing && state.packets.empty();
}

bool PathRules::is_due(int iteration) const {
  if (!machine_.measures()) return has_data(iteration);
  if (iteration + 1 == machine_.iterations) return true;
  if (machine_.before_training && iteration == 0) return true;
  return machine_.every > 0 && (iteration + 1) % machine_.every == 0;
}

int PathRules::version_for(int iteration, int lag) const {
  if (!samples_) return 0;
  if (!machine_.measures()) return std::max(0, iteration - lag);
  return machine_.before_training && iteration == 0 ? 0 : iteration + 1;
}

State PathRules::after(State state, const Move& move) const {
  switch (move.kind) {
    case Move::Kind::kBegin:
      begin(state);
      break;
    case Move::Kind::kAdmit:
      admit(state, {.tokens = move.tokens, .finished = !machine_.rollout});
      break;
    case Move::Kind::kGrow:
      grow(state, static_cast<size_t>(move.which));
      break;
    case Move::Kind::kRestart:
      restart(state, static_cast<size_t>(move.which));
      break;
    case Move::Kind::kFinish:
      finish(state, move);
      break;
    case Move::Kind::kProcess:
      process(state, move);
      break;
    case Move::Kind::kLearn:
      learn(state);
      break;
    case Move::Kind::kTake:
      take(state, move.tokens);
      break;
    case Move::Kind::kGive:
      give(state, move.with);
      break;
    case Move::Kind::kLend:
      admit(state, {.maker = move.with});
      break;
    case Move::Kind::kHelp:
      help(state, move);
      break;
    case Move::Kind::kLose:
      return lost();
    case Move::Kind::kHear:
      hear(state, move.which);
      break;
    case Move::Kind::kLendAgain:
      lend_again(state, move.with);
      break;
    case Move::Kind::kHelpAgain:
      help_again(state, move);
      break;
  }
  take_what_fits(state);
  tidy(state);
  return state;
}

int PathRules::held(const Packet& packet) const {
  int tokens = 0;
  for (const Part& part : packet.parts) tokens += is_held(packet, part) ? part.tokens : 0;
  return tokens;
}

int PathRules::in_flight(const State& state) const {
  int tokens = shares_making_ ? 0 : in_making(state);
  for (const int size : state.open) tokens += size;
  for (const Packet& packet : state.packets) tokens += held(packet);
  return tokens;
}

int PathRules::waiting_at(const State& state, int s) const {
  const Step& step = machine_.steps[static_cast<size_t>(s)];
  int tokens = 0;
  for (const Packet& packet : state.packets) {
    const bool some =
        step.inputs.empty() || std::any_of(step.inputs.begin(), step.inputs.end(), [&](int i) { return packet.done & bit(i); });
    if (!some || (packet.done & bit(s))) continue;
    if (step.inputs.size() < 2 && !step.barrier) return arriving(packet, s);
    if (step.inputs.size() < 2 && packet.end) return tokens;
    tokens += arriving(packet, s);
  }
  return tokens;
}

// Slots have the groups in blocks, as evenly as it goes. Those of other ranks draw nothing here.
int PathRules::quota(int slot) const {
  if (slot / (machine_.slots / machine_.slot_ranks()) != machine_.rank) return 0;
  return machine_.groups * (slot + 1) / machine_.slots - machine_.groups * slot / machine_.slots;
}

int PathRules::most_drawn(int slot) const {
  return quota(slot) * (refill_ < 0 ? 1 : machine_.steps[static_cast<size_t>(refill_)].draws);
}

bool PathRules::is_held(const Packet& packet, const Part& part) const {
  for (size_t s = 0; s < machine_.steps.size(); ++s) {
    if (machine_.steps[s].reads && !(packet.done & bit(static_cast<int>(s))) && reaches(part, static_cast<int>(s))) return true;
  }
  return false;
}

int PathRules::arriving(const Packet& packet, int step) const {
  int tokens = 0;
  for (const Part& part : packet.parts) tokens += reaches(part, step) && is_held(packet, part) ? part.tokens : 0;
  return tokens;
}

int PathRules::iterations_ended(const State& state, int step) const {
  int ended = state.ended;
  for (const Packet& packet : state.packets) ended += packet.end && (packet.done & bit(step));
  return ended;
}

int PathRules::round(int missing, int left) const {
  const int tenths = refill_ < 0 ? 10 : machine_.steps[static_cast<size_t>(refill_)].oversample_tenths;
  return std::min((missing * tenths + 9) / 10, left);
}

void PathRules::begin(State& state) const {
  const int iteration = state.begun++;
  if (!is_due(iteration)) {
    state.packets.push_back({.iteration = iteration, .end = true});
    return;
  }
  state.drawing = true;
  state.drawn = state.round = 0;
  state.drawn_of.assign(static_cast<size_t>(machine_.slots), 0);
  state.kept = state.to_draw = state.drawn_of;
  for (int slot = 0; slot < machine_.slots; ++slot)
    state.to_draw[static_cast<size_t>(slot)] = round(quota(slot), most_drawn(slot));
  if (machine_.is_sampler()) end_packing(state);  // it has no groups
}

// A round is packed: the next one, or the end of the iteration. Where ranks tell each other the verdicts, that is a move of its
// own.
void PathRules::go_on(State& state) const {
  if (!is_judged(state) || (refill_ >= 0 && machine_.ranks > 1)) return;
  learn(state);
}

void PathRules::learn(State& state) const {
  if (refill_ >= 0) state.to_draw = next_round(state);
  if (state.left_to_draw() == 0) return end_drawing(state);
  if (machine_.ranks > 1) ++state.round;
}

void PathRules::end_drawing(State& state) const {
  state.packets.push_back({.iteration = state.begun - 1, .end = true});
  state.drawing = false;
  state.round = 0;
  state.to_draw.clear(), state.drawn_of.clear(), state.kept.clear();
}

// All groups of the round are packed, and a filter with refill has seen them.
bool PathRules::is_judged(const State& state) const {
  if (!state.drawing || state.left_to_draw() > 0 || !state.admitted.empty()) return false;
  return refill_ < 0 || std::all_of(state.packets.begin(), state.packets.end(), [&](const Packet& packet) {
           return packet.iteration < state.begun - 1 || (packet.done & bit(refill_));
         });
}

// By slot.
std::vector<int> PathRules::next_round(const State& state) const {
  std::vector<int> groups;
  for (int slot = 0; slot < machine_.slots; ++slot) {
    const auto s = static_cast<size_t>(slot);
    groups.push_back(round(quota(slot) - state.kept[s], most_drawn(slot) - state.drawn_of[s]));
  }
  return groups;
}

int PathRules::told(const State& state, int iteration) const {
  const int drawing = state.begun - 1;
  if (iteration > drawing) return 0;
  if (iteration < drawing || !state.drawing) return kAll;
  if (!is_judged(state)) return state.round;
  const std::vector<int> next = next_round(state);
  return std::accumulate(next.begin(), next.end(), 0) == 0 ? kAll : state.round + 1;
}

bool PathRules::may_help_in(const State& state, int iteration, int round) const {
  if (state.begun - 1 != iteration) return machine_.help == Help::kFromBehind && state.begun - 1 < iteration;
  return state.round == round || told(state, iteration) == kAll;  // it has no groups in the rounds that follow
}

bool PathRules::has_given_all(const State& state, int iteration) const {
  if (state.begun - 1 != iteration) return state.begun - 1 > iteration;
  return !state.drawing || (refill_ < 0 && state.left_to_draw() == 0);
}

bool PathRules::adds_up(const State& state, const Move& move) const {
  if (machine_.ranks == 1 || move.kind != Move::Kind::kProcess) return false;
  const Step& step = machine_.steps[static_cast<size_t>(move.which)];
  return state.packets[static_cast<size_t>(move.packet)].end && (step.barrier || step.use == Use::kTrains);
}

// Weights: a reader of live ones follows the trainer; a trainer follows the publisher.
bool PathRules::weights_ready(const State& state, int s, int iteration) const {
  const Use use = machine_.steps[static_cast<size_t>(s)].use;
  if (use == Use::kReadsLive && trainer_ >= 0) return iterations_ended(state, trainer_) >= iteration;
  if (use == Use::kTrains && publisher_ >= 0) return iterations_ended(state, publisher_) >= iteration;
  return true;
}

void PathRules::add_processing(const State& state, int s, std::vector<Move>& moves) const {
  const Step& step = machine_.steps[static_cast<size_t>(s)];
  for (size_t p = 0; p < state.packets.size(); ++p) {
    const Packet& packet = state.packets[p];
    if (packet.done & bit(s)) continue;
    const bool here = std::all_of(step.inputs.begin(), step.inputs.end(), [&](int input) { return packet.done & bit(input); });
    if (!here || !weights_ready(state, s, packet.iteration)) return;
    if (step.barrier && !packet.end) continue;  // collected; the end hands all on
    const Move move{.kind = Move::Kind::kProcess, .which = s, .packet = static_cast<int>(p)};
    if (!is_filter(s) || packet.end)
      moves.push_back(move);
    else
      add_verdicts(state, packet, move, moves);
    return;
  }
}

void PathRules::add_verdicts(const State& state, const Packet& packet, Move move, std::vector<Move>& moves) const {
  const int all = (1 << packet.parts.size()) - 1;
  for (move.passes = all; move.passes >= 0; --move.passes) {
    bool possible = true;
    for (size_t g = 0; g < packet.parts.size(); ++g)
      possible = possible && (!(move.passes >> g & 1) || reaches(packet.parts[g], move.which));
    const int passes = __builtin_popcount(static_cast<unsigned>(move.passes));
    const bool wanted = move.which != refill_ || state.kept[static_cast<size_t>(packet.slot)] + passes <= quota(packet.slot);
    if (possible && wanted) moves.push_back(move);
  }
}

void PathRules::process(State& state, const Move& move) const {
  const int s = move.which;
  Packet& packet = state.packets[static_cast<size_t>(move.packet)];
  if (machine_.steps[static_cast<size_t>(s)].barrier) {
    for (Packet& collected : state.packets) collected.done |= collected.iteration == packet.iteration ? bit(s) : 0;
    return;
  }
  packet.done |= bit(s);
  if (!is_filter(s) || packet.end) return;
  for (size_t g = 0; g < packet.parts.size(); ++g) packet.parts[g].dropped_by |= move.passes >> g & 1 ? 0 : bit(s);
  if (s != refill_) return;
  state.kept[static_cast<size_t>(packet.slot)] += __builtin_popcount(static_cast<unsigned>(move.passes));
  go_on(state);
}

// States that cannot be told apart any more become one: tokens that nobody waits for, and groups that have the same way before
// them.
void PathRules::tidy(State& state) const {
  const unsigned all = (1u << machine_.steps.size()) - 1;
  while (!state.packets.empty() && state.packets.front().done == all) {
    state.ended += state.packets.front().end;
    state.packets.erase(state.packets.begin());
  }
  for (Packet& packet : state.packets) tidy(packet);
  if (has_filter()) return;
  int tokens = 0;
  for (const int size : state.open) tokens += size;
  if (tokens > 0) state.open.assign(1, tokens);
}

bool PathRules::has_filter() const {
  return std::any_of(machine_.steps.begin(), machine_.steps.end(), [](const Step& step) { return step.draws > 0; });
}

void PathRules::tidy(Packet& packet) const {
  for (size_t s = 0; s < machine_.steps.size(); ++s) {
    if (machine_.steps[s].draws > 0 && !(packet.done & bit(static_cast<int>(s)))) return;
  }
  std::erase_if(packet.parts, [&](const Part& part) { return !is_held(packet, part); });
  std::sort(packet.parts.begin(), packet.parts.end(), [](const Part& a, const Part& b) { return a.dropped_by < b.dropped_by; });
  for (size_t g = 1; g < packet.parts.size();) {
    Part& last = packet.parts[g - 1];
    if (last.dropped_by != packet.parts[g].dropped_by) {
      ++g;
      continue;
    }
    last.tokens += packet.parts[g].tokens;
    packet.parts.erase(packet.parts.begin() + static_cast<std::ptrdiff_t>(g));
  }
}

std::string key_of(const State& state) {
  std::string key;
  const auto add = [&](size_t number) { key += static_cast<char>(number); };
  for (const int number : {state.begun, state.ended, static_cast<int>(state.drawing), state.round, state.drawn, state.open_slot})
    add(static_cast<size_t>(number));
  add(state.heard * 2 + state.lost);
  for (const auto& by_slot : {state.to_draw, state.drawn_of, state.kept})
    for (const int number : by_slot) add(static_cast<size_t>(number));
  add(state.admitted.size());
  for (const Admitted& group : state.admitted)
    add(static_cast<size_t>(group.tokens * 2 + group.finished)), add(static_cast<size_t>(group.text)),
        add(static_cast<size_t>(group.slot)), add(static_cast<size_t>(group.maker + 2));
  add(state.for_others.size());
  for (const ForOther& group : state.for_others)
    add(static_cast<size_t>(group.owner)), add(static_cast<size_t>(group.tokens * 4 + group.finished * 2 + group.given_up)),
        add(static_cast<size_t>(group.text));
  add(state.open.size());
  for (const int size : state.open) add(static_cast<size_t>(size));
  add(state.packets.size());
  for (const Packet& packet : state.packets) {
    add(static_cast<size_t>(packet.iteration * 2 + packet.end)), add(packet.done), add(static_cast<size_t>(packet.slot)),
        add(packet.parts.size());
    for (const Part& part : packet.parts) add(static_cast<size_t>(part.tokens)), add(part.dropped_by);
  }
  return key;
}

}  // namespace sluice::engine::testing::machine
