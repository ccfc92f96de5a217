#include "tests/engine/capacity_machine.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_set>

namespace sluice::engine::testing {
namespace {

/// A group within a packet.
struct Part {
  int tokens = 0;
  unsigned dropped_by = 0;  // filters, bit by step
};

/// A micro-batch or the end of an iteration, on its way through the steps.
struct Packet {
  int iteration = 0;
  bool end = false;
  unsigned done = 0;  // bit by step
  std::vector<Part> parts;
};

struct Admitted {
  int tokens = 0;  // its credit, or its size once finished
  bool finished = false;
  int text = 0;  // on demand: of a group that was preempted and holds no credit
};

struct State {
  int begun = 0;  // iterations
  int ended = 0;  // by every step
  bool drawing = false;
  int drawn = 0;                   // groups of this iteration
  int to_draw = 0;                 // of these rounds
  int kept = 0;                    // by the filter with refill, in this iteration
  std::vector<Admitted> admitted;  // not packed yet, in order
  std::vector<int> open;           // sizes in the open micro-batch
  std::vector<Packet> packets;     // not done by every step yet, in order
};

class Rules {
 public:
  Rules(const Machine& machine, int budget) : machine_(machine), budget_(budget) {
    for (size_t s = 0; s < machine.steps.size(); ++s) {
      const Step& step = machine.steps[s];
      unsigned filters = 0;  // those that a micro-batch has passed when it comes here
      for (const int input : step.inputs) filters |= filters_[static_cast<size_t>(input)] | (is_filter(input) ? bit(input) : 0);
      filters_.push_back(filters);
      if (step.draws > 1) refill_ = static_cast<int>(s);
      if (step.use == Use::kTrains) trainer_ = static_cast<int>(s);
      if (step.use == Use::kPublishes) publisher_ = static_cast<int>(s);
    }
  }

  std::vector<Move> moves(const State& state) const {
    std::vector<Move> moves;
    for (size_t s = 0; s < machine_.steps.size(); ++s) add_processing(state, static_cast<int>(s), moves);
    add_growth(state, moves);
    add_finishes(state, moves);
    const int room = budget_ - in_flight(state);
    const bool short_of_credit = !state.admitted.empty() && state.admitted.back().text > 0;
    for (int tokens = machine_.worst; state.to_draw > 0 && !short_of_credit && tokens >= machine_.least; --tokens) {
      if (tokens <= room) moves.push_back({.kind = Move::Kind::kAdmit, .tokens = tokens});
    }
    if (may_begin(state)) moves.push_back({.kind = Move::Kind::kBegin});
    return moves;
  }

  // Nothing is sure to happen: groups are only sure to end when they have grown to the worst size, and one that would be admitted
  // with other sizes may ask for the worst one.
  bool stalls(const State& state, const std::vector<Move>& moves) const {
    const auto is_sure = [&](const Move& move) {
      const bool ends_early = move.kind == Move::Kind::kFinish && machine_.on_demand &&
                              state.admitted[static_cast<size_t>(move.which)].tokens < machine_.worst;
      return move.kind != Move::Kind::kAdmit && !ends_early;
    };
    if (std::any_of(moves.begin(), moves.end(), is_sure)) return false;
    if (machine_.on_demand && !state.admitted.empty()) return true;  // the oldest cannot grow
    return moves.empty() ? !over(state) : waits_for_room(state);
  }

  bool waits_for_room(const State& state) const { return state.to_draw > 0 && budget_ - in_flight(state) < machine_.worst; }
  bool over(const State& state) const { return state.begun == machine_.iterations && !state.drawing && state.packets.empty(); }

  State after(State state, const Move& move) const {
    switch (move.kind) {
      case Move::Kind::kBegin:
        begin(state);
        break;
      case Move::Kind::kAdmit:
        ++state.drawn;
        --state.to_draw;
        state.admitted.push_back({move.tokens, !machine_.rollout});
        pack(state);
        break;
      case Move::Kind::kGrow:
        grow(state, static_cast<size_t>(move.which));
        break;
      case Move::Kind::kRestart: {
        Admitted& group = state.admitted[static_cast<size_t>(move.which)];
        group = {.tokens = group.text};
        break;
      }
      case Move::Kind::kFinish:
        state.admitted[static_cast<size_t>(move.which)] = {move.tokens, true};
        pack(state);
        break;
      case Move::Kind::kProcess:
        process(state, move);
        break;
    }
    tidy(state);
    return state;
  }

  // Tokens of which some reader is not done: one that the part reaches, or may reach once a filter has judged it.
  int held(const Packet& packet) const {
    int tokens = 0;
    for (const Part& part : packet.parts) tokens += is_held(packet, part) ? part.tokens : 0;
    return tokens;
  }

  int in_flight(const State& state) const {
    int tokens = 0;
    for (const Admitted& group : state.admitted) tokens += group.tokens;
    for (const int size : state.open) tokens += size;
    for (const Packet& packet : state.packets) tokens += held(packet);
    return tokens;
  }

  // What has come to a step and is not done there. Of a join: from any input. Of others than barriers and joins: one packet.
  int waiting_at(const State& state, int s) const {
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

 private:
  static unsigned bit(int step) { return 1u << step; }
  bool is_filter(int step) const { return machine_.steps[static_cast<size_t>(step)].draws > 0; }
  int most_drawn() const { return machine_.groups * (refill_ < 0 ? 1 : machine_.steps[static_cast<size_t>(refill_)].draws); }

  bool reaches(const Part& part, int step) const { return (part.dropped_by & filters_[static_cast<size_t>(step)]) == 0; }
  bool is_held(const Packet& packet, const Part& part) const {
    for (size_t s = 0; s < machine_.steps.size(); ++s) {
      if (machine_.steps[s].reads && !(packet.done & bit(static_cast<int>(s))) && reaches(part, static_cast<int>(s))) return true;
    }
    return false;
  }

  int arriving(const Packet& packet, int step) const {
    int tokens = 0;
    for (const Part& part : packet.parts) tokens += reaches(part, step) && is_held(packet, part) ? part.tokens : 0;
    return tokens;
  }

  int iterations_ended(const State& state, int step) const {
    int ended = state.ended;
    for (const Packet& packet : state.packets) ended += packet.end && (packet.done & bit(step));
    return ended;
  }

  bool may_begin(const State& state) const {
    if (state.drawing || state.begun == machine_.iterations) return false;
    if (state.ended < state.begun - (machine_.lag + 2) + 1) return false;
    const bool sampled = machine_.rollout && trainer_ >= 0;
    return !sampled || iterations_ended(state, publisher_) >= state.begun - machine_.lag;
  }

  int round(int missing, int left) const {
    const int tenths = refill_ < 0 ? 10 : machine_.steps[static_cast<size_t>(refill_)].oversample_tenths;
    return std::min((missing * tenths + 9) / 10, left);
  }

  void begin(State& state) const {
    ++state.begun;
    state.drawing = true;
    state.drawn = state.kept = 0;
    state.to_draw = round(machine_.groups, most_drawn());
  }

  // The oldest without credit may restart; one with credit may grow if there is room once all younger ones have given way.
  void add_growth(const State& state, std::vector<Move>& moves) const {
    if (!machine_.on_demand) return;
    int room = budget_ - in_flight(state);
    for (size_t g = state.admitted.size(); g-- > 0;) {
      const Admitted& group = state.admitted[g];
      const bool is_next = group.text > 0 && (g == 0 || state.admitted[g - 1].text == 0);
      if (is_next && group.text <= room) moves.push_back({.kind = Move::Kind::kRestart, .which = static_cast<int>(g)});
      if (group.text == 0 && group.tokens < machine_.worst && room > 0)
        moves.push_back({.kind = Move::Kind::kGrow, .which = static_cast<int>(g)});
      room += group.tokens;
    }
  }

  // By one token; the youngest give way.
  void grow(State& state, size_t which) const {
    for (size_t g = state.admitted.size(); in_flight(state) == budget_ && g-- > which + 1;) {
      Admitted& group = state.admitted[g];
      if (group.tokens > 0) group = {.tokens = 0, .text = group.tokens};
    }
    ++state.admitted[which].tokens;
  }

  void add_finishes(const State& state, std::vector<Move>& moves) const {
    for (size_t g = 0; g < state.admitted.size(); ++g) {
      if (state.admitted[g].finished) continue;
      if (machine_.on_demand && g > 0) return;  // handed on in order
      for (int tokens = state.admitted[g].tokens; tokens >= 1; --tokens)
        moves.push_back({.kind = Move::Kind::kFinish, .which = static_cast<int>(g), .tokens = tokens});
    }
  }

  void cut(State& state) const {
    if (state.open.empty()) return;
    Packet& packet = state.packets.emplace_back(Packet{.iteration = state.begun - 1});
    for (const int size : state.open) packet.parts.push_back({.tokens = size});
    state.open.clear();
  }

  void pack(State& state) const {
    while (!state.admitted.empty() && state.admitted.front().finished) {
      state.open.push_back(state.admitted.front().tokens);
      state.admitted.erase(state.admitted.begin());
      int tokens = machine_.worst;
      for (const int size : state.open) tokens += size;
      if (tokens > machine_.micro_batch) cut(state);
    }
    if (state.to_draw > 0 || !state.admitted.empty()) return;
    cut(state);
    go_on(state);
  }

  // A round is packed: the next one, or the end of the iteration.
  void go_on(State& state) const {
    if (!state.drawing || state.to_draw > 0 || !state.admitted.empty()) return;
    if (refill_ >= 0) {
      const bool judged = std::all_of(state.packets.begin(), state.packets.end(),
                                      [&](const Packet& p) { return p.iteration < state.begun - 1 || (p.done & bit(refill_)); });
      if (!judged) return;
      state.to_draw = state.kept < machine_.groups ? round(machine_.groups - state.kept, most_drawn() - state.drawn) : 0;
      if (state.to_draw > 0) return;
    }
    state.packets.push_back({.iteration = state.begun - 1, .end = true});
    state.drawing = false;
  }

  // Weights: a reader of live ones follows the trainer; a trainer follows the publisher.
  bool weights_ready(const State& state, int s, int iteration) const {
    const Use use = machine_.steps[static_cast<size_t>(s)].use;
    if (use == Use::kReadsLive && trainer_ >= 0) return iterations_ended(state, trainer_) >= iteration;
    if (use == Use::kTrains && publisher_ >= 0) return iterations_ended(state, publisher_) >= iteration;
    return true;
  }

  void add_processing(const State& state, int s, std::vector<Move>& moves) const {
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

  void add_verdicts(const State& state, const Packet& packet, Move move, std::vector<Move>& moves) const {
    const int all = (1 << packet.parts.size()) - 1;
    for (move.passes = all; move.passes >= 0; --move.passes) {
      bool possible = true;
      for (size_t g = 0; g < packet.parts.size(); ++g)
        possible = possible && (!(move.passes >> g & 1) || reaches(packet.parts[g], move.which));
      const bool wanted =
          move.which != refill_ || state.kept + __builtin_popcount(static_cast<unsigned>(move.passes)) <= machine_.groups;
      if (possible && wanted) moves.push_back(move);
    }
  }

  void process(State& state, const Move& move) const {
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
    state.kept += __builtin_popcount(static_cast<unsigned>(move.passes));
    go_on(state);
  }

  // States that cannot be told apart any more become one: tokens that nobody waits for, and groups that have the same way before
  // them.
  void tidy(State& state) const {
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

  bool has_filter() const {
    return std::any_of(machine_.steps.begin(), machine_.steps.end(), [](const Step& step) { return step.draws > 0; });
  }

  void tidy(Packet& packet) const {
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

  const Machine& machine_;
  const int budget_;
  std::vector<unsigned> filters_;  // by step
  int refill_ = -1, trainer_ = -1, publisher_ = -1;
};

std::string key_of(const State& state) {
  std::string key;
  const auto add = [&](size_t number) { key += static_cast<char>(number); };
  for (const int number : {state.begun, state.ended, static_cast<int>(state.drawing), state.drawn, state.to_draw, state.kept})
    add(static_cast<size_t>(number));
  add(state.admitted.size());
  for (const Admitted& group : state.admitted)
    add(static_cast<size_t>(group.tokens * 2 + group.finished)), add(static_cast<size_t>(group.text));
  add(state.open.size());
  for (const int size : state.open) add(static_cast<size_t>(size));
  for (const Packet& packet : state.packets) {
    add(static_cast<size_t>(packet.iteration * 2 + packet.end)), add(packet.done), add(packet.parts.size());
    for (const Part& part : packet.parts) add(static_cast<size_t>(part.tokens)), add(part.dropped_by);
  }
  return key;
}

class Search {
 public:
  Search(const Machine& machine, int budget) : machine_(machine), budget_(budget), rules_(machine, budget) {
    finding_.most_held.resize(machine.steps.size());
  }

  Finding run() {
    visit(State{});
    finding_.states = static_cast<int64_t>(seen_.size());
    return std::move(finding_);
  }

 private:
  // True at a stall: the trace leads there.
  bool visit(const State& state) {
    if (!seen_.insert(key_of(state)).second) return false;
    measure(state);
    const std::vector<Move> moves = rules_.moves(state);
    if (rules_.stalls(state, moves)) return finding_.stalls = true;
    for (const Move& move : moves) {
      finding_.trace.push_back(move);
      if (visit(rules_.after(state, move))) return true;
      finding_.trace.pop_back();
    }
    return false;
  }

  void measure(const State& state) {
    const int in_flight = rules_.in_flight(state);
    if (in_flight > budget_) throw std::runtime_error("more tokens in flight than the budget has: " + describe(machine_));
    finding_.most_in_flight = std::max(finding_.most_in_flight, in_flight);
    finding_.most_drawn = std::max(finding_.most_drawn, state.drawn);
    for (const Packet& packet : state.packets)
      finding_.largest_micro_batch = std::max(finding_.largest_micro_batch, rules_.held(packet));
    for (size_t s = 0; s < finding_.most_held.size(); ++s) {
      finding_.most_held[s] = std::max(finding_.most_held[s], rules_.waiting_at(state, static_cast<int>(s)));
    }
  }

  const Machine& machine_;
  const int budget_;
  const Rules rules_;
  std::unordered_set<std::string> seen_;
  Finding finding_;
};

std::string text_of(const Move& move) {
  const std::string which = std::to_string(move.which), tokens = std::to_string(move.tokens);
  switch (move.kind) {
    case Move::Kind::kBegin:
      return "an iteration begins";
    case Move::Kind::kAdmit:
      return "a group is admitted with " + tokens + " tokens";
    case Move::Kind::kGrow:
      return "group " + which + " of those admitted grows by a token";
    case Move::Kind::kRestart:
      return "group " + which + " of those admitted restarts";
    case Move::Kind::kFinish:
      return "group " + which + " of those admitted is finished with " + tokens + " tokens";
    case Move::Kind::kProcess:
      return "step " + which + " is done with packet " + std::to_string(move.packet) + " (keeps " + std::to_string(move.passes) +
             ")";
  }
  return {};
}

}  // namespace

std::string describe(const Machine& machine) {
  std::string text = std::to_string(machine.iterations) + " iterations of " + std::to_string(machine.groups) + " groups of " +
                     std::to_string(machine.least) + " to " + std::to_string(machine.worst) + " tokens" +
                     (machine.rollout ? " by a rollout" : "") + (machine.on_demand ? ", on demand" : "") + ", micro-batches of " +
                     std::to_string(machine.micro_batch) + ", lag " + std::to_string(machine.lag);
  for (size_t s = 0; s < machine.steps.size(); ++s) {
    const Step& step = machine.steps[s];
    text += "; step " + std::to_string(s) + " <-";
    for (const int input : step.inputs) text += " " + std::to_string(input);
    if (step.reads) text += " reads";
    if (step.barrier) text += " barrier";
    if (step.draws > 0)
      text += " filter, draws " + std::to_string(step.draws) + ", oversample " + std::to_string(step.oversample_tenths) + "/10";
    if (step.use != Use::kNone)
      text += step.use == Use::kTrains ? " trains" : step.use == Use::kPublishes ? " publishes" : " reads live weights";
  }
  return text;
}

Finding search(const Machine& machine, int budget) { return Search(machine, budget).run(); }

bool replay(const Machine& machine, int budget, const std::vector<Move>& trace,
            const std::function<void(const std::string&)>& tell) {
  const Rules rules(machine, budget);
  State state;
  for (const Move& move : trace) {
    const std::vector<Move> possible = rules.moves(state);
    const bool is_possible = std::find(possible.begin(), possible.end(), move) != possible.end();
    state = rules.after(state, move);
    tell(text_of(move) + (is_possible ? "; in flight " + std::to_string(rules.in_flight(state)) : "; which is not possible"));
    if (!is_possible) return false;
  }
  const bool stalled = rules.stalls(state, rules.moves(state));
  const bool grows = machine.on_demand && !state.admitted.empty();
  tell(stalled ? std::string(grows ? "the oldest" : "the next") + " group asks for " + std::to_string(machine.worst) + " of " +
                     std::to_string(budget) + " tokens: nothing can happen"
               : "the run goes on");
  return stalled;
}

}  // namespace sluice::engine::testing
