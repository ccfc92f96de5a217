#include "engine/checkpoint/saved_models.h"

#include <exception>

namespace sluice::engine {

void prepare_copies(const Plan& plan, const SavedModels& models) noexcept {
  if (plan.checkpoint_copy != CheckpointCopy::kMemory) return;
  try {
    for (const auto& [name, saved] : models) saved.model->prepare_snapshot();
  } catch (const std::exception&) {
  }
}

void take_snapshot(const SavedModels& models, const std::string& model, int64_t iterations, CheckpointCopy copy) {
  const SavedModel& saved = models.at(model);
  saved.model->take_snapshot(saved.versions.saved_with(iterations), copy);
}

}  // namespace sluice::engine
