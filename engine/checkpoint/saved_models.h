#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "engine/contract/model.h"
#include "engine/contract/world/model_versions.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// The models that a run trains, by name, with what a checkpoint must know of them.
struct SavedModel {
  std::shared_ptr<Model> model;
  ModelVersions versions;  // ModelUsage::versions
};
using SavedModels = std::map<std::string, SavedModel>;

/// Has the models get the memory for their copies, where the plan has them copied. What cannot be had now is asked for again when
/// the first copy is taken, on the thread of a node, which is then the one to tell.
void prepare_copies(const Plan& plan, const SavedModels& models) noexcept;

/// `model` gives its state after so many iterations; on the thread of the node that updates it, or when no node runs any more.
/// kNone: the state is the live one, which is to be written before anything changes it.
void take_snapshot(const SavedModels& models, const std::string& model, int64_t iterations, CheckpointCopy copy);

}  // namespace sluice::engine
