#include "nodes/models/model_contradictions.h"

#include <string>
#include <utility>

#include "nodes/models/model_facts.h"
#include "nodes/models/unquantisable.h"

namespace sluice::nodes {
namespace {

// Keys of a model that is made from another one, by `key`: `why`.
void refuse_beside(const char* key, const std::string& why, const LanguageModelParams& params, ModelProblems& problems) {
  const LanguageModelParams defaults;
  const std::pair<const char*, bool> written[] = {
      {"checkpoint", params.checkpoint.has_value()},
      {"head", params.head != defaults.head},
      {"init", params.init != defaults.init},
      {"dtype", params.dtype != defaults.dtype},
      {"activation_checkpointing", params.activation_checkpointing != RecomputeChoice::kAuto},
      {"optimizer", params.optimizer.has_value()},
      {"router_aux_loss", params.router_aux_loss != defaults.router_aux_loss},
      {"freeze", !params.freeze.empty()},
      {"lora", params.lora.has_value()},
      {"quantization", params.quantization != defaults.quantization},
      {"quantization_group", params.quantization_group != defaults.quantization_group}};
  for (const auto& entry : written) {
    if (entry.second) problems.without_effect(entry.first, why, std::string("remove ") + entry.first + ", or " + key);
  }
}

void find_contradictions_of_average(const LanguageModelParams& params, ModelProblems& problems) {
  if (params.base_of) problems.without_effect("base_of", "it is a moving average", "remove base_of, or ema");
  refuse_beside("ema", "it is the moving average of '" + params.ema->of + "'", params, problems);
  if (params.ema->decay == 1) {
    problems.unusable("ema", "with decay = 1 the average never moves",
                      "a smaller decay, or checkpoint instead of ema: a frozen model");
  }
}

// What is said of training, of a model that nothing trains.
void refuse_untrained(const LanguageModelParams& params, ModelProblems& problems) {
  const std::pair<const char*, bool> written[] = {
      {"freeze", !params.freeze.empty()},
      {"lora", params.lora.has_value()},
      {"activation_checkpointing", params.activation_checkpointing == RecomputeChoice::kLayer},
      {"router_aux_loss", params.router_aux_loss > 0}};
  for (const auto& entry : written) {
    if (entry.second)
      problems.without_effect(entry.first, "without an optimizer nothing of it is trained",
                              std::string("add optimizer, or remove ") + entry.first);
  }
}

}  // namespace

void find_contradictions(const LanguageModelParams& params, ModelProblems& problems) {
  if (params.base_of && params.base_of->empty())
    return problems.unusable("base_of", "base_of of " + problems.model() + " names no model",
                             "name a model with lora, or remove base_of");
  if (params.ema) return find_contradictions_of_average(params, problems);
  if (params.base_of) return refuse_beside("base_of", "it is the base of '" + *params.base_of + "'", params, problems);
  if (!params.checkpoint)
    return problems.missing("checkpoint",
                            "add checkpoint = \"...\": a Hugging Face folder: config.json, *.safetensors, tokenizer.json");
  if (!params.optimizer)
    refuse_untrained(params, problems);
  else if (!params.freeze.empty() && params.lora)
    problems.without_effect("freeze", "beside lora no weight is trained", "remove freeze; targets in lora say what is adapted");
  find_unquantisable(params, problems);
  if (params.lora && params.lora->save == models::SavedAdapter::kAdapter && params.head == ModelHead::kPolicyAndValue) {
    problems.unusable("lora", "save = \"adapter\" would lose the value head of " + problems.model(),
                      "save = \"both\" or \"merged\"", {"PEFT's format has no language model with a value head"});
  }
}

void find_untrained_routers(const LanguageModelParams& params, const models::ModelConfig& config, ModelProblems& problems) {
  if (params.router_aux_loss == 0 || !params.optimizer || trains_routers(config, head_of(params), params.trained())) return;
  const std::string why = !config.experts.any() ? "it is no mixture of experts, and has no routers"
                          : params.lora         ? "beside lora no router is trained"
                                                : "all its routers are frozen";
  problems.without_effect("router_aux_loss", why, "remove router_aux_loss");
}

}  // namespace sluice::nodes
