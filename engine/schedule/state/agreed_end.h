#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "engine/contract/world/world.h"
#include "engine/schedule/state/iteration_cutoff.h"

namespace sluice::engine {

/// How the ranks of a run agree which iteration is the last, when one of them has waited long enough for what is in flight, or
/// knows that some of it cannot come (SamplersThere). Any rank may ask, and several at once.
///
/// Who asks calls all ranks. Each that is called closes its cutoff and tells all others the last iteration that it has entered;
/// the smallest of these is the last one of the run, on all ranks. So all finish it: each has had all of its micro-batches. And
/// none has trained after it: a model changes only after all ranks have entered.
///
/// Ownership: what others send may come when the run is over, so the messages hold this, which forgets the run. Thread-safe;
/// nobody waits inside a call. Failure: where a rank never answers nothing is agreed, and the run ends by what has become of
/// that rank. A rank does not answer whose run is over; then all have entered all iterations, and none needs an answer.
class AgreedEnd : public std::enable_shared_from_this<AgreedEnd> {
 public:
  /// What the run is told, on some thread, once each and in this order; neither may call this.
  struct Tells {
    std::function<void()> closed;  // before any other rank can have agreed
    /// The cutoff has it. Whether some rank knows that it is cut short; on rank 0 with what such a rank says of that, if one
    /// does.
    std::function<void(int64_t last, bool cut_short, const std::string& because)> agreed;
    /// Asked after `closed`: what this rank says of that, one sentence; nothing: it knows of no such thing. Empty: never.
    std::function<std::optional<std::string>()> cut_short_because = {};
  };

  /// All outlive forget().
  AgreedEnd(Reductions& reductions, IterationCutoff& cutoff, Tells tells);

  /// From now on this rank can be called; once.
  void listen();

  /// The first time: calls all ranks.
  void ask();

  /// The run is over. Waits for: what it is being told. It is told nothing after that.
  void forget();

 private:
  void be_called();
  void take(const Contribution& of_all);

  Reductions& reductions_;
  std::mutex mutex_;         // guards what follows, and is held while the run is told
  IterationCutoff* cutoff_;  // null: forgotten
  const Tells tells_;
  bool asked_ = false, called_ = false;
};

}  // namespace sluice::engine
