#pragma once

#include <filesystem>

#include "models/config/config.h"
#include "models/folder/folder.h"
#include "models/sample/packed_weights.h"

namespace sluice::models {

/// A model as generation alone needs it.
struct PackedModel {
  ModelConfig config;
  PackedWeights weights;
};

/// What PackedWeights makes of load_transformer(folder, options). On the CPU it is packed layer by layer as it is read: beside
/// what is packed already, one layer is held, or a table. A value head is left out. `options`: of a model that is not trained and
/// has a language model head. Throws as load_transformer() does.
PackedModel load_packed(const std::filesystem::path& folder, const LoadOptions& options);

}  // namespace sluice::models
