#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file_system.h"
#include "models/train/flat_parameters.h"

namespace sluice::nodes {

// What a checkpoint's folder has of a model that is trained, beside `NAME/`, the model for others to load: the numbers that
// training goes on from, whatever form `NAME/` has. Every tensor has its checksum. All throw UserError; reading names file and
// tensor.

/// Who writes among how many.
struct SnapshotWriter {
  int rank = 0;
  int ranks = 1;
};

/// `NAME.optimizer.safetensors`: steps[1] (int64) and, for every weight that is trained, weight.WEIGHT, exp_avg.WEIGHT,
/// exp_avg_sq.WEIGHT (float32). Where several ranks write, `NAME.optimizer-0000K-of-0000N.safetensors`, each with steps and
/// pieces (nodes/models/snapshot/stored_pieces.h) of the others.
struct TrainingState {
  std::vector<models::TensorPiece> weights, first_moments, second_moments;
  int64_t steps = 0;
};
void write_training_state(const TrainingState& state, const std::filesystem::path& folder, const std::string& model,
                          SnapshotWriter writer, FileSystem& files);

/// Fills the pieces of `state`, and its steps, whoever has written them. Checks all of the model's tensors, whose shapes
/// `weights` has.
void read_training_state(TrainingState& state, const models::NamedTensors& weights, const std::filesystem::path& folder,
                         const std::string& model);

/// `NAME.version-K.safetensors`: weight.WEIGHT of version K.
void write_version(const models::NamedTensors& weights, int64_t version, const std::filesystem::path& folder,
                   const std::string& model, FileSystem& files);
void read_version(const models::NamedTensors& weights, int64_t version, const std::filesystem::path& folder,
                  const std::string& model);

/// `NAME.average.safetensors` of a moving average: weight.WEIGHT, and steps[1] (int64) of the optimizer that were looked at.
void write_average(const models::NamedTensors& weights, int64_t steps, const std::filesystem::path& folder,
                   const std::string& model, FileSystem& files);

/// Fills `weights`, and returns the steps.
int64_t read_average(const models::NamedTensors& weights, const std::filesystem::path& folder, const std::string& model);

}  // namespace sluice::nodes
