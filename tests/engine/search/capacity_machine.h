#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

namespace sluice::engine::testing {

// The rules by which groups are admitted, packed, filtered and released, as a machine with nothing else: no threads, no data, no
// code of the engine. Small enough that every order of events, every size and every verdict can be tried.

enum class Use { kNone, kReadsLive, kTrains, kPublishes };  // of the one model

// When a rank may make a group for another: in the same round of an iteration, one that has no credit there, once its own are all
// admitted; or in the same round, whatever else there is; or also before it comes to the round, which can stall.
enum class Help { kWhereShort, kAnytime, kFromBehind };

/// An ordinary node.
struct Step {
  std::vector<int> inputs;  // earlier steps; empty: takes what the packer makes
  bool reads = true;        // reads columns
  bool barrier = false;
  int draws = 0;               // 0: no filter; 1: drops groups; more: has them replaced, at most draws x groups drawn
  int oversample_tenths = 10;  // so many tenths of the missing groups are drawn in a round
  Use use = Use::kNone;
};

/// A small pipeline, or one path of it. Sizes are tokens of a group: with a rollout of the credit that it asks for, and it may
/// end with any less. On demand that is the credit that it asks for at first; it may grow up to the worst, and whoever is younger
/// gives way.
struct Machine {
  int groups = 1;
  int least = 1;
  int worst = 1;
  int micro_batch = 1;
  int slots = 1;  // that groups are dealt out to, in blocks; none is packed with groups of another
  int rank = 0;   // of `ranks` that share the slots: this one has the groups of its own alone
  int ranks = 1;
  int owners =
      0;  // with roles: the first so many of the ranks have the slots, and the others make all of their groups; 0: no roles
  int making = 0;          // with roles: tokens of a rank that makes groups
  bool elastic = false;    // these ranks may be lost, all but one; the others make their groups
  bool keeps_room = true;  // then each keeps room for a group that a lost one was to make
  bool gives_up = true;    // on demand: such a rank gives up credit of finished groups, which it still has, for one that it makes
  int iterations = 1;
  int lag = 0;
  bool rollout = false;    // it samples from the model of `model_of`, where a step trains that
  bool on_demand = false;  // with a rollout
  std::vector<Step> steps;
  int model_of = -1;             // the path whose model the rollout samples from; -1: the first that trains one
  bool of_frozen_model = false;  // the rollout samples from another model, which nobody trains
  bool own_share = false;        // of the budget: then no more than that is packed together, unless a group is more
  int every = 0;                 // the path only measures: after so many iterations and after the last; or, with 0,
  bool before_training = false;  // only after the last, and before the first

  Help help = Help::kWhereShort;
  int lasts = 0;  // its data are enough for so many iterations; 0: for all

  bool measures() const { return every > 0 || before_training; }
  int slot_ranks() const { return owners > 0 ? owners : ranks; }
  bool is_sampler() const { return owners > 0 && rank >= owners; }
};

/// Paths that run side by side, all of them on each rank. All have the iterations, the lag and the micro-batches of the first.
/// Ranks share no tokens: one waits for the others where numbers are added over all of them. On several ranks a path that trains
/// and whose rollout asks for the worst has a second budget for what is made and not packed yet, and ranks make groups for each
/// other.
struct Paths {
  std::vector<Machine> paths;
  int ranks = 1;
  int readable_versions = 1;    // of each trained model, that stay readable beside each other
  bool publisher_waits = true;  // for the other paths that sample; without that a version in use can be overwritten
};

std::string describe(const Machine& machine);
std::string describe(const Paths& paths);

/// One event.
struct Move {
  // What two ranks do together has two halves: the owner's of a group (kLend, kLendAgain, kTake) and that of who makes it
  // (kHelp, kHelpAgain, kGive). A rank is lost (kLose), and each owner hears of it at its own time (kHear).
  enum class Kind {
    kBegin,
    kAdmit,
    kGrow,
    kRestart,
    kFinish,
    kProcess,
    kLearn,
    kTake,
    kGive,
    kLend,
    kHelp,
    kLose,
    kHear,
    kLendAgain,
    kHelpAgain
  };
  Kind kind = Kind::kBegin;
  int which = 0;   // kGrow, kRestart, kFinish: place among the admitted, then among those made for others; kProcess: step; kHear:
                   // rank; kLendAgain, kHelpAgain: 0 of the oldest that was not taken over, 1 of another
  int tokens = 0;  // kAdmit, kLend, kHelp, kLendAgain, kHelpAgain: credit; kFinish, kTake, kGive: size
  int packet = 0;  // kProcess: place among the packets; kLendAgain, kHelpAgain: among those that the rank makes for that one
  int passes = 0;  // kProcess of a filter: bit by group, those that it keeps
  int path = 0;    // of all: those of rank 0 first
  int with = -1;   // the rank that does the other half; -1: there is none

  bool operator==(const Move&) const = default;
};

/// The most that was seen of a path.
struct Seen {
  int in_flight = 0;
  int micro_batch = 0;    // the largest
  int drawn = 0;          // groups, in an iteration
  std::vector<int> held;  // by step: a barrier what it collects, a join what waits for the other inputs, others a micro-batch
};

/// What a search found.
struct Finding {
  bool stalls = false;
  bool overwrites = false;        // a version was published over one that is sampled from
  std::vector<Move> trace;        // to the one or the other
  bool publisher_waited = false;  // for another path, in some state
  bool rank_waited = false;       // for another, likewise
  bool rank_helped = false;       // another: made a group for it
  bool made_again = false;        // a group that a lost rank was to make
  bool helper_went_on = false;    // to the next iteration, with a group that its owner had not taken over
  int64_t states = 0;
  std::vector<Seen> paths;  // those of rank 0 first
};

/// Tries everything, or goes on to the first stall. `shares`: by path, alike on all ranks. Throws std::runtime_error if more
/// tokens of a path than its share of the budget were in flight.
Finding search(const Paths& paths, const std::vector<int>& shares);
Finding search(const Machine& machine, int budget);

/// Follows the trace move by move; true if each was possible and nothing is possible at the end though the run is not over.
/// `tell` gets a line about each move and one about the end.
bool replay(const Paths& paths, const std::vector<int>& shares, const std::vector<Move>& trace,
            const std::function<void(const std::string&)>& tell);
bool replay(const Machine& machine, int budget, const std::vector<Move>& trace,
            const std::function<void(const std::string&)>& tell);

}  // namespace sluice::engine::testing
