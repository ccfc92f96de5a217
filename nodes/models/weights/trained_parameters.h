#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/params/param_set.h"
#include "models/adapters/lora.h"
#include "models/config/config.h"
#include "models/config/output_head.h"
#include "models/config/precision.h"
#include "models/config/quantisation.h"
#include "models/folder/folder.h"
#include "models/train/freeze.h"

namespace sluice::nodes {

/// Low-rank adapters of a model's matrices, which are trained instead of the model (Hu et al. 2021, LoRA).
///
///   lora = { rank = 16, alpha = 32, targets = ["q_proj", "v_proj"], save = "both" }
struct LoraParams {
  int64_t rank = 16;
  double alpha = 32;
  std::vector<std::string> targets{models::kAllLinear};
  std::optional<std::filesystem::path> adapter;  // whose values they begin with
  models::SavedAdapter save = models::SavedAdapter::kBoth;

  models::LoraOptions options() const { return {.rank = rank, .alpha = alpha, .targets = targets}; }
};

engine::ParamSet<LoraParams> lora_params();

/// Which of a model's weights are trained: all but those that `freeze` matches, or instead of them adapters and a value head.
struct TrainedParameters {
  std::vector<std::string> freeze;  // models/train/freeze.h
  std::optional<LoraParams> lora;

  /// Whether the weight of this name is frozen, unless it is a value head beside adapters.
  bool freezes(const std::string& name) const { return lora.has_value() || models::is_frozen(name, freeze); }
};

/// Whether the adapter that `lora` begins with, if it does, is one of a model of this shape, with these targets, this rank and
/// alpha. Throws UserError where it is not.
void check_first_values(const models::ModelConfig& config, models::Head head, const LoraParams& lora);

/// Bytes of what is trained, which lies in buffers of its own (models/train/flat_parameters.h), and of what is not, which is
/// loaded with LoadOptions::narrow_operands, and quantised where that is said.
struct ParameterBytes {
  int64_t parameters = 0;  // numbers, adapters included
  int64_t trained = 0;     // bytes, once
  int64_t frozen = 0;
  int64_t passing = 0;  // of gradients, what a backward holds at a time that gives them away layer by layer
  std::vector<std::pair<std::string, int64_t>> trained_weights;  // their names, as an optimizer knows them, and sizes in numbers
};

/// Of a model of this shape. Throws UserError for a pattern or a target that means nothing of it. `expert_ranks`: that share out
/// experts in a backward.
ParameterBytes parameter_bytes(const models::ModelConfig& config, models::Head head, models::Precision precision,
                               const TrainedParameters& trained, const models::QuantisationOptions& quantisation = {},
                               int64_t expert_ranks = 1);

/// Of a model of this shape of which nothing is trained.
ParameterBytes frozen_parameter_bytes(const models::ModelConfig& config, models::Head head, models::Precision precision,
                                      const models::QuantisationOptions& quantisation = {});

/// Of the matrices that are quantised, and of adapters as a version for sampling has them beside these
/// (models/layers/packed_linear.h).
int64_t quantised_matrix_bytes(const models::ModelConfig& config, const models::QuantisationOptions& quantisation);
int64_t packed_adapter_bytes(const models::ModelConfig& config, const LoraParams& lora);

/// True of a mixture of experts, a router of which is trained.
bool trains_routers(const models::ModelConfig& config, models::Head head, const TrainedParameters& trained);

/// What adapters add to the activations of a pass that trains over so many tokens. A search for what fits asks for many
/// numbers of them, so what does not depend on these is counted once.
std::function<int64_t(int64_t tokens)> adapter_activations(const models::ModelConfig& config, const LoraParams& lora,
                                                           models::Precision precision);

/// Makes of the weights of a trainable model what is trained of it.
void prepare(models::Weights& weights, const TrainedParameters& trained, uint64_t seed);

}  // namespace sluice::nodes
