#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>

#include "engine/contract/model.h"
#include "engine/contract/node.h"
#include "models/folder/folder.h"
#include "models/forward/transformer.h"
#include "models/train/adamw.h"
#include "models/train/learning_rate.h"
#include "nodes/models/kept_versions.h"
#include "nodes/models/model_snapshot.h"
#include "nodes/models/model_text.h"
#include "nodes/models/published_weights.h"

namespace sluice::nodes {

/// A model of a run: live weights, the published versions of them, an optimizer if it is trained, and the tokenizer of its
/// folder.
///
/// Live weights and optimizer belong to the executor thread of the node that trains the model; take_snapshot() copies them there,
/// and what is written comes from the copy. The published weights and the tokenizer may be used from any thread.
class LanguageModel final : public engine::Model {
 public:
  /// `folder`: where the tokenizer is. Publishes version 0, for sampling in `precision`. Without an optimizer the model is
  /// frozen, and is not saved. kept_versions, saved_versions: see engine::ModelUsage.
  LanguageModel(std::string name, std::filesystem::path folder, models::Transformer transformer,
                std::optional<models::AdamWOptions> optimizer, int64_t kept_versions,
                models::Precision precision = models::Precision::kFloat32, int64_t saved_versions = 0);

  LanguageModel(const LanguageModel&) = delete;  // published weights and snapshot refer to the live ones
  LanguageModel& operator=(const LanguageModel&) = delete;

  engine::ModelBytes bytes() const override;

  /// `NAME/` is a Hugging Face folder with the tokenizer, adapters merged in; the adapters in PEFT's format in it or instead, as
  /// set_saved_adapter() said. What lies beside it: nodes/models/snapshot_files.h.
  void prepare_snapshot() override;
  void take_snapshot(engine::VersionRange versions) override;
  void write_snapshot(const std::filesystem::path& folder, FileSystem& files) override;
  void restore(const std::filesystem::path& folder, engine::VersionRange versions) override;

  void set_saved_adapter(models::SavedAdapter saved) { saved_adapter_ = saved; }

  /// Without it the learning rate is that of the optimizer's options.
  void set_learning_rate(const models::LearningRate& rate);

  /// Sets the learning rate of the optimizer to that of an iteration, and returns it.
  double enter_iteration(int64_t iteration);

  /// The live weights are another model's, which counts them in its bytes().
  void share_weights() { weight_bytes_ = 0; }

  const std::string& name() const { return text_.name(); }
  const std::filesystem::path& folder() const { return text_.folder(); }  // of the tokenizer
  const models::ModelConfig& config() const { return transformer_.config(); }
  const models::Transformer& transformer() const { return transformer_; }
  models::Transformer& transformer() { return transformer_; }

  /// May be used from any thread.
  const ModelText& model_text() const { return text_; }
  const text::Tokenizer& tokenizer() const { return text_.tokenizer(); }

  /// Null when frozen.
  models::AdamW* optimizer() { return optimizer_ ? &*optimizer_ : nullptr; }

  /// The live weights are `version` from now on. Not while they are trained.
  void publish(int64_t version);
  const models::PackedWeights& sampling_weights(int64_t version) const { return published_.at(version); }
  models::Precision precision() const { return precision_; }
  at::Device device() const { return transformer_.weights().embedding.device(); }

 private:
  const ModelText text_;
  const models::Precision precision_;
  models::SavedAdapter saved_adapter_ = models::SavedAdapter::kBoth;
  models::Transformer transformer_;
  std::optional<models::AdamW> optimizer_;
  std::optional<models::LearningRate> learning_rate_;  // unset: constant
  std::optional<KeptVersions> saved_versions_;         // of a trained model, as the next
  std::optional<ModelSnapshot> snapshot_;
  int64_t weight_bytes_ = 0;  // of the live ones
  int64_t optimizer_bytes_ = 0;
  int64_t gradient_bytes_ = 0;
  PublishedWeights published_;
};

/// The model called `name` of a node's resources, which are those of a plan.
std::shared_ptr<LanguageModel> language_model(const engine::NodeResources& resources, const std::string& name);

}  // namespace sluice::nodes
