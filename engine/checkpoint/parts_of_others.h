#pragma once

#include <cstdint>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// The key under which a rank tells rank 0 that it has written its part of a model, or why not.
Reductions::Key key_of_part(const Plan& plan, const std::string& model, int64_t iterations, bool at_the_end);

/// The key under which rank 0 tells that what the run has come to at its end, after so many iterations, is saved.
Reductions::Key key_of_last_checkpoint(const Plan& plan, int64_t iterations);

/// What rank 0 knows of the parts of a checkpoint that other ranks write (engine/checkpoint/own_parts.h). With one rank there are
/// none. Thread-safe.
class PartsOfOthers {
 public:
  /// Both outlive this.
  PartsOfOthers(const Plan& plan, Reductions& reductions) : plan_(plan), reductions_(reductions) {}

  /// All others write their part of the model, of a checkpoint after so many iterations.
  void expect(const std::string& model, int64_t iterations, bool at_the_end);

  /// Tells all others that the run is saved at its end, after so many iterations; 0: it is not.
  void tell_of_last_save(int64_t iterations);

  /// Tells all others that it is, in a whole checkpoint, for which they wait: so they fail with a run that is not saved.
  void tell_that_it_is_saved(int64_t iterations);

  /// Waits for: what is expected. Ends when: all of it is written, or the run has failed. Throws UserError that names the first
  /// rank that could not write its part. Nothing is expected after it.
  void await();

  /// Likewise, of a checkpoint that has failed already: waits alone, so that nobody writes into its folder any more.
  void settle();

  /// Of a checkpoint that never became complete: nothing is expected any more, and nobody waited for.
  void forget();

 private:
  struct Expected {
    std::string model;
    Reductions::Key key;
    std::future<void> done;
  };

  std::vector<Expected> waited_for();
  void check(const Expected& expected);

  const Plan& plan_;
  Reductions& reductions_;
  std::mutex mutex_;  // of expected_
  std::vector<Expected> expected_;
};

}  // namespace sluice::engine
