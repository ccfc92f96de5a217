#pragma once

#include "models/config/config.h"
#include "models/config/config_families.h"
#include "models/config/config_file.h"

namespace sluice::models {

/// The mixture of experts that layers have. Refuses windows of the families that have them beside a mixture, and noise of the
/// router. Throws UserError naming file and key.
ExpertsConfig read_experts(const ConfigObject& file, const FamilyExperts& family);

/// Fills config.experts.dense_layers, of its config.layers: a layer is a mixture if it is not in mlp_only_layers and its number,
/// counted from 1, is a multiple of decoder_sparse_step. As transformers has it, numbers that no layer has mean nothing. Without
/// a mixture left it is a model without experts. Throws UserError naming file and key.
void read_dense_layers(const ConfigObject& file, const FamilyExperts& family, ModelConfig& config);

/// Intermediate sizes of all experts of a mixture together.
double inner_size(const ExpertsConfig& experts);

}  // namespace sluice::models
