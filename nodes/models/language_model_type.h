#pragma once

#include <memory>

#include "engine/contract/model.h"
#include "nodes/models/language_model_params.h"

namespace sluice::nodes {

/// `[models.NAME]` tables: LanguageModel is what they load. Immutable.
class LanguageModelType final : public engine::ModelType {
 public:
  const engine::ParamTable& params() const override { return params_.erased(); }

  /// Reads the folder's config.json only.
  std::shared_ptr<const void> bind(const engine::ModelSpec& spec, engine::BindContext& context,
                                   engine::ModelFacts& facts) const override;

  std::shared_ptr<engine::Model> load(const std::shared_ptr<const void>& params, const engine::ModelUsage& usage) const override;

 private:
  const engine::ParamSet<LanguageModelParams> params_ = language_model_params();
};

}  // namespace sluice::nodes
