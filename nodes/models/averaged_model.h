#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "models/memory/host_copy.h"
#include "nodes/models/ema_params.h"
#include "nodes/models/language_model.h"

namespace sluice::nodes {

/// The moving average of what is trained of another model: average = decay average + (1 - decay) weights, after every
/// `every_steps`-th step of its optimizer. It begins with the other's weights and shares those that are frozen. Read-only for
/// nodes; nothing of it is sampled.
///
/// Each rank that trains the other one has the average of all its weights, and the same bits: a step has left the same weights on
/// all of them. So it does not matter who owns what of the optimizer.
///
/// Saved as a model is: `NAME/` is a folder in the form of the other's, and `NAME.average.safetensors` what a run goes on with.
class AveragedLanguageModel final : public LanguageModel {
 public:
  /// `of`: begins with the weights that both have.
  AveragedLanguageModel(const std::string& name, std::shared_ptr<const TrainedLanguageModel> of, const EmaParams& params);

  void follow() override;

  engine::ModelBytes bytes() const override;
  void prepare_snapshot() override { copy_.prepare(); }
  void take_snapshot(engine::VersionRange versions, engine::CheckpointCopy copy) override;
  void write_snapshot(const std::filesystem::path& folder, FileSystem& files) override;
  void restore(const std::filesystem::path& folder, engine::VersionRange versions) override;

 private:
  AveragedLanguageModel(const std::string& name, std::shared_ptr<const TrainedLanguageModel> of, const EmaParams& params,
                        const at::Tensor& average);

  models::NamedTensors views(const at::Tensor& buffer) const;

  const std::shared_ptr<const TrainedLanguageModel> of_;
  const double decay_;
  const int64_t every_steps_;
  const at::Tensor average_;  // [floats], as the buffer of what it follows
  int64_t steps_ = 0;         // of the other's optimizer, that were looked at
  models::HostCopy copy_;
  struct Taken {
    models::NamedTensors weights;
    int64_t steps = 0;
  };
  std::optional<Taken> taken_;  // and not written yet
};

}  // namespace sluice::nodes
