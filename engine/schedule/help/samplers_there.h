#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>

#include "engine/contract/world/publication.h"
#include "engine/contract/world/world.h"
#include "engine/ranks/returning_ranks.h"
#include "engine/ranks/roll_call.h"
#include "engine/schedule/help/group_owner.h"
#include "engine/schedule/state/run_state.h"

namespace sluice::engine {

/// The ranks that only sample and may be lost, as a rank that trains sees them: which are there, and which have come back.
///
/// One that has come back samples nothing before all that train include it alike. Those that have loaded their models rank 0
/// names at the end of an iteration, with the numbers that all add up; so all let it in from the same version of the weights on:
/// the first that none of them can have begun to train meanwhile. Who of them has lost it again does nothing, and the others find
/// it lost too.
///
/// Belongs to the driver. Threads: all calls from any. Failure: where nobody is left that samples what comes next, the run is cut
/// short (RunState::cut_short): what all that train have entered is finished, the rest dropped.
class SamplersThere {
 public:
  struct Parts {
    int64_t begun = 0;  // iterations that were complete before the run
    GroupOwner& owner;
    RollCall& roll_call;
    Publications& publications;
    std::shared_ptr<ReturningRanks> returning;  // of rank 0; else null
    std::function<void()> drop_in_flight;       // of all ranks
  };

  /// `state` outlives it, and what `parts` refers to.
  SamplersThere(RunState& state, Parts parts);

  /// It is lost; `why` is one sentence.
  void lose(int rank, const std::string& why);

  /// No rank is left that samples: some rank that trains has found that, and others may not know of all losses yet.
  static void note_none_is_left(RunState& state, const std::string& why);

  /// Another process is that rank. It samples nothing yet.
  void take_back(int rank, int64_t incarnation);

  /// At the end of an iteration, of rank 0: adds to what it contributes who is to be let in.
  void name_those_who_wait(int64_t iteration, Contribution& mine);

  /// Of all: takes that out of what all ranks have contributed together, and lets them in.
  void let_in_those_named(int64_t iteration, Contribution& of_all);

 private:
  struct There {
    int64_t incarnation = 0;
    int64_t samples_from = 0;  // iteration
  };

  int64_t first_version(int64_t iteration) const { return iteration + state_.most_open_iterations() + 1; }
  int64_t first_iteration(int64_t iteration) const { return first_version(iteration) + state_.plan.schedule.policy_lag; }
  void note_named(const ReturningRank& rank);
  bool is_named(const ReturningRank& rank);
  void let_in(const ReturningRank& rank, int64_t iteration);
  bool some_sample(int64_t iteration) const;

  RunState& state_;
  const Parts parts_;
  std::mutex mutex_;  // guards what follows
  std::map<int, There> there_;
  std::map<int, int64_t> named_;  // of rank 0: which process of a rank it has named last
};

}  // namespace sluice::engine
