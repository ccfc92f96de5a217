#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/checkpoint/parts_of_others.h"
#include "engine/contract/node.h"
#include "engine/observe/clock.h"
#include "engine/observe/iteration_log.h"

namespace sluice::engine {

/// Decides when a run is saved, and gathers its state from the threads of the nodes. Of several ranks rank 0 has one, and the
/// others save parts of the models for it. Thread-safe.
///
/// A checkpoint is a cut after an iteration: each node and each model that is trained gives its state when it has ended that
/// iteration, while others may be behind or ahead of it. A source is the first to end an iteration, so there it is decided.
/// Once every node has ended it the cut is complete, and a thread of its own writes it while the run goes on. There is one cut at
/// a time, because models hold one copy of themselves; one that becomes due before the last is written is
/// made up for at the next iteration's end.
///
/// A model gives its state as a copy, which that thread writes; or, where Plan::checkpoint_copy is kNone, it is written at once
/// by the thread of the node that updates it, into the folder that the rest comes to later. Nobody waits for another there, but
/// for that folder to be made. What fails is the failure of the whole cut, and told when that would have been written.
class Checkpointer {
 public:
  struct Parts {
    const Plan& plan;  // outlives this, as what follows
    const Clock& clock;
    int64_t begun = 0;           // iterations that were complete when the run began
    std::filesystem::path last;  // the checkpoint that it goes on from; empty: none
    Reductions& reductions;      // over which other ranks tell of their parts
    CheckpointWriter::Parts writer;
    std::function<void()> before_write;  // on the writing thread: brings to the disk's cache what is on its way to growing files
    std::function<void(std::exception_ptr)> on_failure;  // why the run is to end: [checkpoint] on_failure = "stop", or its
                                                         // keep_best is no metric
  };

  explicit Checkpointer(Parts parts);

  /// Waits for a cut that is being written; one that is not complete is dropped, with what is written of it.
  ~Checkpointer();

  /// A source has ended the iteration; before its state is given. Of several the first one decides.
  void source_ended(int64_t iteration);

  /// On the thread of the node that updates the models, before model_updated(): whether other ranks are to save their parts of
  /// them after this iteration, for which their folder is there then.
  bool announce(const std::vector<std::string>& models, int64_t iteration);

  /// A node has ended the iteration; on its thread. Throws UserError where what it keeps is against its contract, or too much.
  void node_ended(const std::string& node, int64_t iteration, const NodeBase& implementation);

  /// The node that updates `model` has ended the iteration, and nobody has published the weights; on its thread.
  void model_updated(const std::string& model, int64_t iteration);

  /// Every node has ended the iteration. `growing`: lengths of the files that have its metrics.
  void iteration_reported(const IterationReport& report, std::map<std::string, int64_t> growing);

  /// Saves the run at the next end of an iteration.
  void save_now();

  /// Saves the last complete iteration unless it is saved, from the live weights. Only when no node runs any more. Throws
  /// UserError.
  void save_last();

  /// For a run that has failed. Waits for: a complete cut to be written. Ends when: it is, or it takes longer than `limit`.
  void finish_writing(std::chrono::seconds limit);

  /// Where the last complete checkpoint lies; empty: there is none.
  std::filesystem::path last() const;

  /// Seconds that nodes have waited for models to be copied or written since the last call.
  double take_seconds();

  /// Whether a node waits for its model to be written.
  bool holds_up() const { return held_up_.load(std::memory_order_relaxed) > 0; }

 private:
  bool due(int64_t iteration) const;
  void refuse_too_much_state() const;
  void prepare();
  void save_in_place(const std::string& model, int64_t iterations);
  void loop();
  void write(const Cut& cut);
  void finish(const Cut& cut);
  void failed(const std::string& what);

  const Parts parts_;
  CheckpointWriter writer_;
  PartsOfOthers others_;
  mutable std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<int64_t, std::map<std::string, NodeState>> states_;  // of iterations that are not all reported, and the last that is
  std::map<std::string, int64_t> state_bytes_;                  // of each node: state_bytes() of what it kept last
  IterationReport last_report_{.iteration = -1, .metrics = {}};
  std::map<std::string, int64_t> last_growing_;
  int64_t decided_ = -1;         // iterations up to this one have been decided about
  int64_t cut_ = -1;             // the iteration after which one is taken; -1: none
  std::exception_ptr failure_;   // of that one: the first model that could not be written
  std::optional<Cut> complete_;  // it, when it can be written
  bool wanted_ = false;          // one was missed, or asked for
  bool prepared_ = false;        // the models have the memory for their copies
  int64_t last_cut_ns_ = 0;
  int64_t saved_ = 0;  // iterations of the last checkpoint
  double seconds_ = 0;
  std::filesystem::path last_;
  bool ending_ = false;
  std::atomic<int> held_up_ = 0;  // nodes that wait for their models
  std::thread thread_;
};

}  // namespace sluice::engine
