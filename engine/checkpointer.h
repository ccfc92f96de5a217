#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include "engine/model.h"

namespace sluice::engine {

/// Saves the trained models as `RUN/checkpoint/NAME/`. The folder is replaced as a whole once every model of an iteration is written, so
/// it always holds one complete checkpoint or none. Thread-safe.
class Checkpointer {
 public:
  /// `models`: those that are trained, by name. Nothing is ever written when the run folder is empty.
  Checkpointer(std::filesystem::path run_folder, int64_t every_iterations, std::map<std::string, std::shared_ptr<Model>> models)
      : run_folder_(std::move(run_folder)), every_iterations_(every_iterations), models_(std::move(models)) {}

  /// The node that updates `model` has ended the iteration; called on its thread. Throws UserError (disk full).
  void model_updated(const std::string& model, int64_t iteration);

  /// Saves everything now. Only when no node runs any more.
  void save_all();

  /// Where the last complete checkpoint lies; empty: there is none.
  std::filesystem::path last() const;

 private:
  void write(const std::string& model);
  void commit();
  std::filesystem::path pending_folder() const { return run_folder_ / "checkpoint.tmp"; }

  const std::filesystem::path run_folder_;
  const int64_t every_iterations_;
  const std::map<std::string, std::shared_ptr<Model>> models_;
  mutable std::mutex mutex_;
  std::map<int64_t, std::set<std::string>> written_;  // by iteration
  std::filesystem::path last_;
};

}  // namespace sluice::engine
