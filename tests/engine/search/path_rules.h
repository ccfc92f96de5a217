#pragma once

#include <numeric>
#include <string>
#include <vector>

#include "tests/engine/search/capacity_machine.h"

// The part of the machine that is one path: what can happen in it, as far as other paths let it. Values and rules, no threads.
namespace sluice::engine::testing::machine {

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
  int slot = 0;
  std::vector<Part> parts;
};

struct Admitted {
  int tokens = 0;  // its credit, or its size once finished
  bool finished = false;
  int text = 0;  // on demand: of a group that was preempted and holds no credit
  int slot = 0;
  int maker = kMine;                              // another rank, which has the credit
  static constexpr int kMine = -1, kNobody = -2;  // this one; it was a rank that is lost
};

/// A group that is made for another rank.
struct ForOther {
  int owner = 0;
  int tokens = 0;  // as of one's own
  bool finished = false;
  int text = 0;           // likewise
  bool given_up = false;  // on demand: it is finished, and its credit is not counted any more

  int credit() const { return given_up ? 0 : tokens; }
};

/// A path at some moment.
struct State {
  int begun = 0;  // iterations, those included that it passed over
  int ended = 0;  // by every step
  bool drawing = false;
  bool lost = false;
  unsigned heard = 0;                // of which ranks it knows that they are lost, by bit
  int round = 0;                     // of draws of this iteration, where ranks tell each other the verdicts
  int drawn = 0;                     // groups of this iteration
  std::vector<int> to_draw;          // of this round, by slot
  std::vector<int> drawn_of;         // of this iteration, by slot
  std::vector<int> kept;             // by the filter with refill, in this iteration, by slot
  std::vector<Admitted> admitted;    // not packed yet, in order
  std::vector<ForOther> for_others;  // not taken over yet, by owner, of each in order
  std::vector<int> open;             // sizes in the open micro-batch
  int open_slot = 0;                 // of these
  std::vector<Packet> packets;       // not done by every step yet, in order

  int left_to_draw() const { return std::accumulate(to_draw.begin(), to_draw.end(), 0); }
  int handed_on() const { return begun - (drawing ? 1 : 0); }  // iterations
};

/// The same text for the same state.
std::string key_of(const State& state);

/// The half that the other rank does of a move which both do together: `mine` is an owner's, `rank` is my own.
Move other_half(const Move& mine, int rank);

/// It is only possible together with the half of the owner.
bool is_helpers_half(const Move& move);

class PathRules {
 public:
  /// `iterations` are those that the run comes to; `trained`: some step of some path trains the model. The machine must outlive
  /// the rules.
  PathRules(const Machine& machine, int iterations, bool trained, int share);

  /// All moves that the path's own rules allow. Whether others do is asked for a kBegin, and for what publishes().
  std::vector<Move> moves(const State& state) const;

  State after(State state, const Move& move) const;

  /// It happens at some time, whatever the sizes are. An admission is not sure to: the group may ask for more.
  bool is_sure(const State& state, const Move& move) const;

  /// A group is admitted at some time, even one of the worst size.
  bool has_room(const State& state) const;

  bool is_over(const State& state) const;

  /// Where ranks wait for each other: the end of an iteration at a step that adds up numbers.
  bool adds_up(const State& state, const Move& move) const;

  /// Rounds of an iteration of which this rank has told all its verdicts; kAll: it wants no other round.
  int told(const State& state, int iteration) const;
  static constexpr int kAll = 1 << 20;

  /// Groups of another rank, as far as it depends on what each has come to.
  bool may_help_in(const State& state, int iteration, int round) const;

  /// Likewise of one that a lost rank was to make: it goes back to the iteration when what it has begun is finished.
  bool may_make_again(const State& state, int iteration) const;

  /// With roles, of an owner: no group of the iteration is left for others to make.
  bool has_given_all(const State& state, int iteration) const;

  bool publishes(const Move& move) const { return move.kind == Move::Kind::kProcess && move.which == publisher_; }
  bool is_publisher() const { return publisher_ >= 0; }
  int published(const State& state) const { return iterations_ended(state, publisher_); }  // versions, beside the first
  int iterations_ended(const State& state, int step) const;

  /// Whether the path samples from the trained model, in which iterations it takes part, and with which version.
  bool samples() const { return samples_; }
  bool is_due(int iteration) const;
  bool leads(int iteration) const { return !machine_.measures() && has_data(iteration); }
  int version_for(int iteration, int lag) const;

  /// Tokens of which some reader is not done: one that the part reaches, or may reach once a filter has judged it.
  int held(const Packet& packet) const;

  /// Tokens of the path's share; where it has a budget for the making, those are not among them.
  int in_flight(const State& state) const;
  bool shares_making() const { return shares_making_; }
  int in_making(const State& state) const;
  int making_budget() const { return making_; }

  /// What has come to a step and is not done there. Of a join: from any input. Of others than barriers and joins: one packet.
  int waiting_at(const State& state, int step) const;

 private:
  static unsigned bit(int step) { return 1u << step; }
  bool is_filter(int step) const { return machine_.steps[static_cast<size_t>(step)].draws > 0; }
  bool has_filter() const;
  bool has_data(int iteration) const { return machine_.lasts == 0 || iteration < machine_.lasts; }
  int quota(int slot) const;
  int most_drawn(int slot) const;
  bool reaches(const Part& part, int step) const { return (part.dropped_by & filters_[static_cast<size_t>(step)]) == 0; }
  bool is_held(const Packet& packet, const Part& part) const;
  int arriving(const Packet& packet, int step) const;
  int round(int missing, int left) const;
  int credit_of(const State& state, int which) const;
  bool is_judged(const State& state) const;
  std::vector<int> next_round(const State& state) const;
  bool weights_ready(const State& state, int step, int iteration) const;

  void add_processing(const State& state, int step, std::vector<Move>& moves) const;
  void add_verdicts(const State& state, const Packet& packet, Move move, std::vector<Move>& moves) const;
  void add_growth(const State& state, std::vector<Move>& moves) const;
  void add_growth_for_others(const State& state, std::vector<Move>& moves) const;
  void add_finishes(const State& state, std::vector<Move>& moves) const;
  void add_admissions(const State& state, std::vector<Move>& moves) const;
  void add_takes(const State& state, std::vector<Move>& moves) const;
  void add_help(const State& state, std::vector<Move>& moves) const;
  void add_losses(const State& state, std::vector<Move>& moves) const;
  void add_again(const State& state, std::vector<Move>& moves) const;
  int room_to_admit(const State& state) const;
  int room_to_help() const;
  bool may_help(const State& state, int tokens) const;
  bool some_lack_credit(const State& state) const;
  int room_that_is_given_up(const State& state) const;

  State lost() const;
  void hear(State& state, int rank) const;
  void lend_again(State& state, int maker) const;
  void help_again(State& state, const Move& move) const;
  void begin(State& state) const;
  void admit(State& state, Admitted group) const;
  void help(State& state, const Move& move) const;
  void give(State& state, int owner) const;
  void take(State& state, int tokens) const;
  void take_what_fits(State& state) const;
  void finish(State& state, const Move& move) const;
  void grow(State& state, size_t which) const;
  void grow_for_other(State& state, size_t which) const;
  void restart(State& state, size_t which) const;
  void make_room(State& state, int tokens, size_t younger_than) const;
  void cut(State& state) const;
  void pack(State& state) const;
  void pack_oldest(State& state) const;
  void end_packing(State& state) const;
  void go_on(State& state) const;
  void learn(State& state) const;
  void end_drawing(State& state) const;
  void process(State& state, const Move& move) const;
  void tidy(State& state) const;
  void tidy(Packet& packet) const;

  const Machine& machine_;
  const int iterations_;
  const int share_;
  const int micro_batch_;
  const bool shares_making_;
  std::vector<unsigned> filters_;  // by step: those that a micro-batch has passed when it comes there
  int refill_ = -1, trainer_ = -1, publisher_ = -1;
  bool samples_ = false;
  int making_ = 0;  // budget
};

}  // namespace sluice::engine::testing::machine
