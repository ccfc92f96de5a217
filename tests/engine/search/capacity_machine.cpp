#include "tests/engine/search/capacity_machine.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "tests/engine/search/machine_text.h"
#include "tests/engine/search/path_rules.h"

namespace sluice::engine::testing {
namespace {

using machine::is_helpers_half;
using machine::other_half;
using machine::PathRules;
using machine::State;

bool has(const Machine& machine, Use use) {
  return std::any_of(machine.steps.begin(), machine.steps.end(), [&](const Step& step) { return step.use == use; });
}

// The path whose model a path samples from, if it is trained; -1: none.
int model_of(const Paths& paths, size_t p) {
  const auto trains = [](const Machine& path) { return has(path, Use::kTrains); };
  if (const int of = paths.paths[p].model_of; of >= 0) return trains(paths.paths[static_cast<size_t>(of)]) ? of : -1;
  const auto first = std::find_if(paths.paths.begin(), paths.paths.end(), trains);
  return first == paths.paths.end() ? -1 : static_cast<int>(first - paths.paths.begin());
}

// The run ends where the data of all paths that do not only measure have.
int iterations_of(const Paths& paths) {
  int most = 0;
  for (const Machine& path : paths.paths) {
    if (!path.measures()) most = std::max(most, path.lasts > 0 ? std::min(path.lasts, path.iterations) : path.iterations);
  }
  return most;
}

Paths alone(const Machine& machine) { return {.paths = {machine}, .readable_versions = machine.lag + 1}; }

/// What can follow on a state of a path.
struct Way {
  Move move;
  bool sure = false;
  int publishes = -1;  // work of the publisher that waits as the end of this iteration does; -1: something else
  int adds_up = -1;    // it is the end of this iteration at a step that adds up over the ranks; -1: something else
  int to = -1;         // state; -1: not tried yet
};

/// The states that a path has come to, each once, with all that the rest of the run has to know of them.
class PathStates {
 public:
  struct Known {
    State state;
    int published = 0;
    std::vector<int> came;  // by step: iterations whose end has come there
    bool has_room = false, is_over = false;
    std::vector<Way> ways;
  };

  PathStates(const Machine& machine, int index, int iterations, bool trained, int share)
      : machine_(machine), index_(index), share_(share), rules_(machine, iterations, trained, share) {
    seen_.held.resize(machine.steps.size());
    add(State{});
  }

  const Known& at(int id) const { return known_[static_cast<size_t>(id)]; }
  const PathRules& rules() const { return rules_; }
  const Seen& seen() const { return seen_; }

  int follow(int id, size_t way) {
    Known& from = known_[static_cast<size_t>(id)];
    Way& taken = from.ways[way];
    if (taken.to < 0) taken.to = add(rules_.after(from.state, taken.move));
    return taken.to;
  }

 private:
  int add(State state) {
    const auto [place, is_new] = ids_.emplace(key_of(state), static_cast<int>(known_.size()));
    if (!is_new) return place->second;
    measure(state);
    Known& known = known_.emplace_back(Known{.state = std::move(state)});
    if (rules_.is_publisher()) known.published = rules_.published(known.state);
    for (size_t s = 0; s < machine_.steps.size(); ++s)
      known.came.push_back(rules_.iterations_ended(known.state, static_cast<int>(s)));
    known.has_room = rules_.has_room(known.state);
    known.is_over = rules_.is_over(known.state);
    for (Move& move : rules_.moves(known.state)) {
      move.path = index_;
      Way way{.move = move, .sure = rules_.is_sure(known.state, move)};
      if (rules_.publishes(move)) {
        const machine::Packet& packet = known.state.packets[static_cast<size_t>(move.packet)];
        way.publishes = packet.iteration - (packet.end ? 0 : 1);
      }
      if (rules_.adds_up(known.state, move)) {
        way.adds_up = known.state.packets[static_cast<size_t>(move.packet)].iteration;
        known.came[static_cast<size_t>(move.which)] = way.adds_up + 1;
      }
      known.ways.push_back(way);
    }
    return place->second;
  }

  void measure(const State& state) {
    const int in_flight = rules_.in_flight(state);
    if (in_flight > share_) throw std::runtime_error("more tokens in flight than the budget has: " + describe(machine_));
    if (rules_.shares_making() && rules_.in_making(state) > rules_.making_budget())
      throw std::runtime_error("more tokens in the making than the budget for it has: " + describe(machine_));
    seen_.in_flight = std::max(seen_.in_flight, in_flight);
    seen_.drawn = std::max(seen_.drawn, state.drawn);
    for (const machine::Packet& packet : state.packets) seen_.micro_batch = std::max(seen_.micro_batch, rules_.held(packet));
    for (size_t s = 0; s < seen_.held.size(); ++s)
      seen_.held[s] = std::max(seen_.held[s], rules_.waiting_at(state, static_cast<int>(s)));
  }

  const Machine& machine_;
  const int index_;
  const int share_;
  const PathRules rules_;
  std::unordered_map<std::string, int> ids_;
  std::deque<Known> known_;
  Seen seen_;
};

/// A state of each path.
using Ids = std::vector<int>;

/// The rules between paths, and between ranks. They share no tokens, so all that one sees of the others is how far they are; but
/// two ranks make a move together where one makes a group for the other.
class Run {
 public:
  Run(const Paths& paths, const std::vector<int>& shares)
      : paths_(paths), lag_(paths.paths.front().lag), of_rank_(paths.paths.size()) {
    for (int rank = 0; rank < paths.ranks; ++rank) {
      for (size_t p = 0; p < of_rank_; ++p) {
        Machine& machine = machines_.emplace_back(paths.paths[p]);
        machine.rank = rank, machine.ranks = paths.ranks;
        states_.emplace_back(machine, static_cast<int>(states_.size()), iterations_of(paths), model_of(paths, p) >= 0, shares[p]);
      }
    }
  }

  /// Those of all ranks, one rank after the other.
  size_t paths() const { return states_.size(); }
  const Machine& machine(size_t p) const { return machines_[p]; }
  PathStates& path(size_t p) { return states_[p]; }
  const PathStates::Known& at(const Ids& ids, size_t p) const { return states_[p].at(ids[p]); }

  bool allows(const Ids& ids, size_t p, const Way& way) const {
    if (way.move.kind == Move::Kind::kBegin) return may_begin(ids, p);
    if (way.move.kind == Move::Kind::kLose) return others_are_there(ids, p);
    if (way.move.kind == Move::Kind::kHear) return at(ids, beside_on(way.move.which, p)).state.lost;
    if (way.move.with >= 0) return !is_helpers_half(way.move) && helpers_half(ids, p, way.move);
    if (!other_ranks_allow(ids, p, way)) return false;
    return way.publishes < 0 || !paths_.publisher_waits || readers_allow(ids, p, way.publishes);
  }

  // The states after a way that is allowed.
  Ids after(Ids ids, size_t p, size_t w) {
    const Move move = at(ids, p).ways[w].move;
    if (move.with >= 0) {
      const size_t helper = beside_on(move.with, p), half = *helpers_half(ids, p, move);
      ids[helper] = states_[helper].follow(ids[helper], half);
    }
    ids[p] = states_[p].follow(ids[p], w);
    return ids;
  }

  // All have come to the same point of the same iteration.
  bool other_ranks_allow(const Ids& ids, size_t p, const Way& way) const {
    const bool learns = way.move.kind == Move::Kind::kLearn;
    if (!learns && way.adds_up < 0) return true;
    const State& mine = at(ids, p).state;
    const int wanted = learns ? states_[p].rules().told(mine, mine.begun - 1) : way.adds_up + 1;
    for (size_t other = p % of_rank_; other < paths(); other += of_rank_) {
      if (other == p) continue;
      const int there = learns ? states_[other].rules().told(at(ids, other).state, mine.begun - 1)
                               : at(ids, other).came[static_cast<size_t>(way.move.which)];
      if (there < wanted) return false;
    }
    return true;
  }

  bool rank_waits(const Ids& ids) const {
    for (size_t p = 0; p < paths(); ++p) {
      for (const Way& way : at(ids, p).ways) {
        if (!other_ranks_allow(ids, p, way)) return true;
      }
    }
    return false;
  }

  // What a path that samples wants at the least: version i + 1 takes the place of version i + 1 - kept.
  bool readers_allow(const Ids& ids, size_t p, int iteration) const {
    for (size_t other = first_beside(p); other < first_beside(p) + of_rank_; ++other) {
      const PathRules& rules = states_[other].rules();
      if (other == p || !rules.samples() || model_beside(other) != static_cast<int>(p)) continue;
      if (rules.version_for(at(ids, other).state.handed_on(), lag_) < iteration + 2 - paths_.readable_versions) return false;
    }
    return true;
  }

  // Nothing is sure to happen: groups are only sure to end when they have grown to the worst size, and one that would be admitted
  // with other sizes may ask for the worst one.
  bool stalls(const Ids& ids) const {
    bool over = true;
    for (size_t p = 0; p < paths(); ++p) {
      const PathStates::Known& known = at(ids, p);
      if (known.has_room) return false;
      for (const Way& way : known.ways) {
        if (way.sure && allows(ids, p, way)) return false;
      }
      over = over && known.is_over;
    }
    return !over;
  }

  // Somebody samples from a version of which the memory was taken.
  bool overwrites(const Ids& ids) const {
    for (size_t p = 0; p < paths(); ++p) {
      const State& state = at(ids, p).state;
      if (!state.drawing || !states_[p].rules().samples()) continue;
      if (states_[p].rules().version_for(state.begun - 1, lag_) + paths_.readable_versions <= published(ids, p)) return true;
    }
    return false;
  }

  bool publisher_waits(const Ids& ids) const {
    for (size_t p = 0; p < paths(); ++p) {
      for (const Way& way : at(ids, p).ways) {
        if (way.publishes >= 0 && !readers_allow(ids, p, way.publishes)) return true;
      }
    }
    return false;
  }

 private:
  // The way of the other rank that is its half of a move of path p; none: it cannot do it now.
  std::optional<size_t> helpers_half(const Ids& ids, size_t p, const Move& move) const {
    const State& mine = at(ids, p).state;
    const size_t helper = beside_on(move.with, p);
    const PathStates::Known& there = at(ids, helper);
    const PathRules& rules = states_[helper].rules();
    if (move.kind == Move::Kind::kLend && !rules.may_help_in(there.state, mine.begun - 1, mine.round)) return std::nullopt;
    if (move.kind == Move::Kind::kLendAgain && !rules.may_make_again(there.state, mine.begun - 1)) return std::nullopt;
    Move half = other_half(move, static_cast<int>(p / of_rank_));
    half.path = static_cast<int>(helper);
    const auto way = std::find_if(there.ways.begin(), there.ways.end(), [&](const Way& w) { return w.move == half; });
    if (way == there.ways.end()) return std::nullopt;
    return static_cast<size_t>(way - there.ways.begin());
  }

  // The same path on another rank.
  size_t beside_on(int rank, size_t p) const { return static_cast<size_t>(rank) * of_rank_ + p % of_rank_; }

  // Another rank that makes groups for others.
  bool others_are_there(const Ids& ids, size_t p) const {
    for (int rank = machines_[p].owners; rank < paths_.ranks; ++rank)
      if (const size_t other = beside_on(rank, p); other != p && !at(ids, other).state.lost) return true;
    return false;
  }

  bool may_begin(const Ids& ids, size_t p) const {
    const int next = at(ids, p).state.begun;
    if (next >= reported(ids) + lag_ + 2) return false;
    const PathRules& rules = states_[p].rules();
    if (!owners_need_no_more(ids, p, next - 1)) return false;
    if (!rules.leads(next) && !is_led(ids, first_beside(p), next)) return false;
    return !rules.is_due(next) || published(ids, p) >= rules.version_for(next, lag_);
  }

  // A rank that makes groups for others alone goes on when they have given all of them away.
  bool owners_need_no_more(const Ids& ids, size_t p, int iteration) const {
    if (!machines_[p].is_sampler() || iteration < 0) return true;
    for (int owner = 0; owner < machines_[p].owners; ++owner) {
      const size_t other = beside_on(owner, p);
      if (!states_[other].rules().has_given_all(at(ids, other).state, iteration)) return false;
    }
    return true;
  }

  int reported(const Ids& ids) const {
    int least = std::numeric_limits<int>::max();
    for (size_t p = 0; p < paths(); ++p) least = std::min(least, at(ids, p).state.ended);
    return least;
  }

  // The first path of the same rank, and the one whose model path p samples from.
  size_t first_beside(size_t p) const { return p - p % of_rank_; }
  int model_beside(size_t p) const {
    const int of = model_of(paths_, p % of_rank_);
    return of < 0 ? -1 : static_cast<int>(first_beside(p)) + of;
  }

  // Versions of the model that path p samples from.
  int published(const Ids& ids, size_t p) const {
    const int of = model_beside(p);
    if (of < 0) return 0;
    int least = at(ids, static_cast<size_t>(of)).published;  // and by all that train it, where this is another rank
    for (int owner = 0; machines_[p].is_sampler() && owner < machines_[p].owners; ++owner)
      least = std::min(least, at(ids, beside_on(owner, static_cast<size_t>(of))).published);
    return least;
  }

  bool is_led(const Ids& ids, size_t first, int iteration) const {
    for (size_t p = first; p < first + of_rank_; ++p) {
      if (states_[p].rules().leads(iteration) && at(ids, p).state.begun > iteration) return true;
    }
    return false;
  }

  const Paths& paths_;
  const int lag_;
  const size_t of_rank_;  // paths
  std::deque<Machine> machines_;
  std::deque<PathStates> states_;
};

class Search {
 public:
  Search(const Paths& paths, const std::vector<int>& shares) : run_(paths, shares) {}

  Finding search() {
    visit(Ids(run_.paths(), 0));
    finding_.states = static_cast<int64_t>(visited_.size());
    for (size_t p = 0; p < run_.paths(); ++p) finding_.paths.push_back(run_.path(p).seen());
    return std::move(finding_);
  }

 private:
  // True at a stall, or where a version is overwritten: the trace leads there.
  bool visit(const Ids& ids) {
    if (!visited_.insert(number_of(ids)).second) return false;
    finding_.publisher_waited = finding_.publisher_waited || run_.publisher_waits(ids);
    finding_.rank_waited = finding_.rank_waited || run_.rank_waits(ids);
    if (run_.overwrites(ids)) return finding_.overwrites = true;
    if (run_.stalls(ids)) return finding_.stalls = true;
    for (size_t p = 0; p < run_.paths(); ++p) {
      for (size_t w = 0; w < run_.at(ids, p).ways.size(); ++w) {
        const Way& way = run_.at(ids, p).ways[w];
        if (!run_.allows(ids, p, way)) continue;
        note(way.move, run_.at(ids, p).state);
        finding_.trace.push_back(way.move);
        if (visit(run_.after(ids, p, w))) return true;
        finding_.trace.pop_back();
      }
    }
    return false;
  }

  void note(const Move& move, const State& state) {
    finding_.rank_helped = finding_.rank_helped || move.kind == Move::Kind::kLend;
    finding_.made_again = finding_.made_again || move.kind == Move::Kind::kLendAgain;
    finding_.helper_went_on = finding_.helper_went_on || (move.kind == Move::Kind::kBegin && !state.for_others.empty());
  }

  static uint64_t number_of(const Ids& ids) {
    const size_t bits = std::min<size_t>(32, 64 / ids.size());
    uint64_t number = 0;
    for (const int id : ids) {
      if (static_cast<uint64_t>(id) >> bits != 0) throw std::runtime_error("the paths have too many states to be numbered");
      number = number << bits | static_cast<uint64_t>(id);
    }
    return number;
  }

  Run run_;
  std::unordered_set<uint64_t> visited_;
  Finding finding_;
};

// What a path waits for where nothing can happen.
std::string want_of(const Machine& machine, const State& state, int share) {
  const std::string asks = " group asks for " + std::to_string(machine.worst) + " of " + std::to_string(share) + " tokens";
  if (machine.on_demand && !state.admitted.empty()) return "the oldest" + asks;
  if (!state.admitted.empty()) return "the oldest group is not taken over into " + std::to_string(share) + " tokens";
  return state.left_to_draw() > 0 ? "the next" + asks : "iteration " + std::to_string(state.begun) + " waits for others";
}

std::string tokens_of(const PathRules& rules, const State& state) {
  const std::string making = rules.shares_making() ? ", in the making " + std::to_string(rules.in_making(state)) : std::string();
  return "; in flight " + std::to_string(rules.in_flight(state)) + making;
}

}  // namespace

Finding search(const Paths& paths, const std::vector<int>& shares) { return Search(paths, shares).search(); }

Finding search(const Machine& machine, int budget) { return search(alone(machine), {budget}); }

bool replay(const Paths& paths, const std::vector<int>& shares, const std::vector<Move>& trace,
            const std::function<void(const std::string&)>& tell) {
  const size_t of_rank = paths.paths.size();
  const auto name = [&](size_t p) {
    const std::string rank = paths.ranks > 1 ? "rank " + std::to_string(p / of_rank) + ": " : std::string();
    return rank + (of_rank > 1 ? "path " + std::to_string(p % of_rank) + ": " : std::string());
  };
  Run run(paths, shares);
  Ids ids(run.paths(), 0);
  for (const Move& move : trace) {
    const auto p = static_cast<size_t>(move.path);
    const std::vector<Way>& ways = run.at(ids, p).ways;
    const auto way = std::find_if(ways.begin(), ways.end(), [&](const Way& w) { return w.move == move; });
    const bool is_possible = way != ways.end() && run.allows(ids, p, *way);
    if (is_possible) ids = run.after(ids, p, static_cast<size_t>(way - ways.begin()));
    tell(name(p) + text_of(move) +
         (is_possible ? tokens_of(run.path(p).rules(), run.at(ids, p).state) : "; which is not possible"));
    if (!is_possible) return false;
  }
  if (run.overwrites(ids)) tell("a version is overwritten that is sampled from");
  const bool stalled = run.stalls(ids);
  std::string wants;
  for (size_t p = 0; p < run.paths(); ++p) {
    if (!run.at(ids, p).is_over)
      wants += (wants.empty() ? "" : ", ") + name(p) + want_of(run.machine(p), run.at(ids, p).state, shares[p % of_rank]);
  }
  tell(stalled ? wants + ": nothing can happen" : "the run goes on");
  return stalled;
}

bool replay(const Machine& machine, int budget, const std::vector<Move>& trace,
            const std::function<void(const std::string&)>& tell) {
  return replay(alone(machine), {budget}, trace, tell);
}

}  // namespace sluice::engine::testing
