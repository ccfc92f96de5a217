#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "base/file_system.h"
#include "models/train/flat_parameters.h"

namespace sluice::nodes {

// What a checkpoint's folder has of a model that is trained, beside `NAME/`, the model for others to load: the numbers that
// training goes on from, whatever form `NAME/` has. Every tensor has its checksum. All throw UserError; reading names file and
// tensor.

/// `NAME.optimizer.safetensors`: steps[1] (int64) and, for every weight that is trained, weight.WEIGHT, exp_avg.WEIGHT,
/// exp_avg_sq.WEIGHT (float32).
struct TrainingState {
  models::NamedTensors weights, first_moments, second_moments;  // with the same names
  int64_t steps = 0;
};
void write_training_state(const TrainingState& state, const std::filesystem::path& folder, const std::string& model,
                          FileSystem& files);

/// Fills the tensors of `state`, and its steps.
void read_training_state(TrainingState& state, const std::filesystem::path& folder, const std::string& model);

/// `NAME.version-K.safetensors`: weight.WEIGHT of version K.
void write_version(const models::NamedTensors& weights, int64_t version, const std::filesystem::path& folder,
                   const std::string& model, FileSystem& files);
void read_version(const models::NamedTensors& weights, int64_t version, const std::filesystem::path& folder,
                  const std::string& model);

}  // namespace sluice::nodes
