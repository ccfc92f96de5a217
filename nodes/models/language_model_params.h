#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/params/param_set.h"
#include "models/config/config_quantisation.h"
#include "models/config/precision.h"
#include "models/config/quantisation.h"
#include "nodes/models/ema_params.h"
#include "nodes/models/optimizer_params.h"
#include "nodes/models/weights/trained_parameters.h"

namespace sluice::nodes {

enum class ModelInit { kCheckpoint, kRandom };

constexpr std::array<std::pair<ModelInit, const char*>, 2> enum_names(ModelInit) {
  return {{{ModelInit::kCheckpoint, "checkpoint"}, {ModelInit::kRandom, "random"}}};
}

enum class ModelHead { kLanguageModel, kValue, kPolicyAndValue };
constexpr std::array<std::pair<ModelHead, const char*>, 3> enum_names(ModelHead) {
  return {{{ModelHead::kLanguageModel, "language_model"},
           {ModelHead::kValue, "value"},
           {ModelHead::kPolicyAndValue, "policy+value"}}};
}

/// Whether the backward of a model computes each layer again; kAuto: where memory has no room for what it would keep.
enum class RecomputeChoice { kAuto, kNone, kLayer };
constexpr std::array<std::pair<RecomputeChoice, const char*>, 3> enum_names(RecomputeChoice) {
  return {{{RecomputeChoice::kAuto, "auto"}, {RecomputeChoice::kNone, "none"}, {RecomputeChoice::kLayer, "layer"}}};
}

/// A model of a pipeline.
///
///   [models.actor]
///   checkpoint = "models/tiny-arithmetic"      # a Hugging Face folder
///   head = "language_model"                    # or "value": a critic, or "policy+value": both on one trunk
///   init = "checkpoint"                        # or "random": only config.json and the tokenizer of the folder
///   dtype = "float32"                          # or "bfloat16": what it computes in; its weights stay float32
///   device = "cpu"                             # or "cuda:0": where its weights are, and what reads them computes
///   optimizer = { type = "adamw", learning_rate = 3e-4, clip_grad_norm = 1.0 }    # none: frozen
///   activation_checkpointing = "auto"          # "layer": the backward computes each layer again from its input; or "none"
///   router_aux_loss = 0.0                      # of a mixture of experts: a loss that balances its experts counts so much
///   freeze = ["model.embed_tokens.*"]          # weights that are not trained
///   lora = { rank = 16, alpha = 32 }           # adapters are trained instead of the weights
///   quantization = "none"                      # or "int8", "int4": how matrices that are not trained are held
///   quantization_group = 128                   # weights that share a scale
///
/// or, of a model with adapters what it was before it was trained, without weights of its own:
///
///   [models.reference]
///   base_of = "actor"
///
/// or a moving average of a model that is trained, which it follows:
///
///   [models.teacher]
///   ema = { of = "actor", decay = 0.99, every_steps = 1 }
struct LanguageModelParams {
  std::optional<std::filesystem::path> checkpoint;  // one of the three
  std::optional<std::string> base_of;
  std::optional<EmaParams> ema;
  ModelHead head = ModelHead::kLanguageModel;
  ModelInit init = ModelInit::kCheckpoint;
  models::Precision dtype = models::Precision::kFloat32;
  std::string device = "cpu";
  RecomputeChoice activation_checkpointing = RecomputeChoice::kAuto;
  std::optional<OptimizerParams> optimizer;
  double router_aux_loss = 0;  // models/layers/feed_forward/router_training.h
  std::vector<std::string> freeze;
  std::optional<LoraParams> lora;
  models::Quantisation quantization = models::Quantisation::kNone;
  int64_t quantization_group = models::QuantisationOptions{}.group;

  std::optional<models::StoredQuantisation> stored;  // what the folder says of itself; no key, and it goes before these

  models::QuantisationOptions quantisation() const {
    return stored ? stored->options() : models::QuantisationOptions{quantization, quantization_group};
  }
  TrainedParameters trained() const { return optimizer ? TrainedParameters{freeze, lora} : TrainedParameters(); }
};

engine::ParamSet<LanguageModelParams> language_model_params();

}  // namespace sluice::nodes
