#pragma once

#include "models/config/config.h"
#include "models/config/config_families.h"
#include "models/config/config_file.h"

namespace sluice::models {

/// The mixture of experts that every layer has. Refuses layers that differ (mlp_only_layers, decoder_sparse_step), windows of
/// the families that have them beside a mixture, and noise of the router. Throws UserError naming file and key.
ExpertsConfig read_experts(const ConfigObject& file, const FamilyExperts& family);

/// Intermediate sizes of all experts of a layer together.
double inner_size(const ExpertsConfig& experts);

}  // namespace sluice::models
