#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <mutex>
#include <string>
#include <thread>

#include "base/files/file_system.h"
#include "engine/checkpoint/saved_models.h"
#include "engine/contract/world/world.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// What a rank other than rank 0 saves: its parts of the models that are trained, into the folder of the checkpoint that rank 0
/// has made before it says so. Rank 0 hears when each is written, or why not.
///
/// A model gives its part as a copy, which a thread of this writes; or, where Plan::checkpoint_copy is kNone, it is written at
/// once by the thread of the node that updates it. Thread-safe. Failure: rank 0 hears of it, and decides what becomes of the run.
class OwnParts {
 public:
  struct Parts {
    const Plan& plan;                  // outlives this
    std::filesystem::path run_folder;  // rank 0's
    SavedModels models;
    FileSystem& files;  // likewise
    Reductions& reductions;
  };

  explicit OwnParts(Parts parts);

  /// Waits for what is being written.
  ~OwnParts();

  /// The node that updates `model` has ended the last of so many iterations, after which the run is saved; on its thread.
  void save(const std::string& model, int64_t iterations);

  /// When no node runs any more. Waits for: rank 0 to say whether the run is saved at its end, and from where on; then writes,
  /// and waits for rank 0 to have a whole checkpoint. Ends when: it has, or the run has failed. Throws UserError where it has
  /// not, whoever could not write.
  void save_last();

  /// Whether a node waits for its model to be written.
  bool holds_up() const { return held_up_.load(std::memory_order_relaxed) > 0; }

 private:
  struct Part {
    std::string model;
    int64_t iterations = 0;
    bool at_the_end = false;
  };

  void prepare();
  void loop();
  void write(const Part& part);
  void tell(const Part& part, const std::string& failure);
  Contribution of_all(const Reductions::Key& key) const;

  const Parts parts_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::deque<Part> copied_;  // to be written; the first one is while `writing_`
  bool writing_ = false;
  bool prepared_ = false;
  bool ending_ = false;
  std::atomic<int> held_up_ = 0;  // nodes that wait for their models
  std::thread thread_;
};

}  // namespace sluice::engine
