#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/schedule/stages/stage_host.h"
#include "engine/schedule/state/run_state.h"
#include "engine/schedule/state/workload.h"

namespace sluice::engine {

/// What a node does together with the same node of all ranks at the end of an iteration, and of each step of a barrier: totals
/// and gradients are added up before the node works, and the weights that it has changed are brought to all after it. Lines of
/// files go to rank 0, and from there whether the run is saved.
///
/// Belongs to the node's runner. Each call is of the node's executor and returns at once: false says that others are waited for,
/// and `go_on` is called when all is there, on some thread, maybe before the call returns. Nothing else is called meanwhile.
class RankExchange {
 public:
  /// Called when a wait is over.
  using GoOn = std::function<void()>;

  /// `models`: all of the run, by name.
  RankExchange(RunState& state, StageHost& host, const Workload::Models& models);

  RankExchange(const RankExchange&) = delete;  // what is under way refers to it
  RankExchange& operator=(const RankExchange&) = delete;

  /// Something is added at the end of an iteration.
  bool adds() const { return has_totals_ || has_files_ || !trained_.empty(); }

  /// The point is a step, or Reductions::Key::kEnd. `meeting`: its number for who watches, even.
  bool combine(const Iteration& iteration, int64_t point, int64_t meeting, const GoOn& go_on);

  /// What the node's last work has changed. `meeting`: likewise, odd.
  bool bring_weights(int64_t meeting, const GoOn& go_on);

  /// After a call that returned true, or when the node is brought again after one that did not.
  void go_on_from_meeting(const Iteration& iteration);

  /// All ranks have the weights: whatever follows them may.
  void follow();

  /// On rank 0, at the end of an iteration: lines that other ranks gave it.
  void take_lines(const Iteration& iteration);

  /// The run is saved after the iteration whose end was combined last, as rank 0 says.
  bool saves() const { return saves_; }

 private:
  void come(int64_t meeting);
  Contribution contribution(const Iteration& iteration, bool at_end);
  void take_sums(Contribution of_all, const GoOn& done);
  void add_up_gradients(const Contribution& of_all, size_t model, const GoOn& done);
  void bring_weights_of(size_t model, const GoOn& done);
  GoOn second_half(const GoOn& go_on);
  bool is_other_half_done() { return exchanging_.fetch_add(1) == 1; }

  RunState& state_;
  StageHost& host_;
  const bool has_totals_;
  const bool has_files_;  // that rank 0 gathers
  // Models that the node updates, whose gradients are added, and after them those that average these.
  std::vector<std::pair<std::string, std::shared_ptr<Model>>> trained_;
  std::atomic<int> exchanging_{0};  // of the two halves of an exchange, calling and being called back, those that are done
  std::optional<Meeting> meeting_;  // that this rank has come to
  bool saves_ = false;
};

}  // namespace sluice::engine
