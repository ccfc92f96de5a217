#include "nodes/models/model_facts.h"

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/process/machine.h"
#include "base/text/strings.h"
#include "models/forward/activation_bytes.h"
#include "models/portable/activation_bytes.h"
#include "models/portable/sampler.h"
#include "models/sample/generation.h"
#include "models/sample/kv_cache.h"
#include "models/sample/packed_weights.h"

namespace sluice::nodes {
namespace {

// A second head beside the first: values, what is kept for them, and the gradients of hidden states and weight.
int64_t value_head_bytes(const models::ModelConfig& config, int64_t tokens) {
  constexpr int64_t kFloat = 4;
  return (tokens * (config.hidden_size + 8) + config.hidden_size) * kFloat;
}

// An executor has at most all cores; how many, the pipeline decides.
std::function<int64_t(const engine::ModelPass&)> activations_on_device(const models::ModelConfig& config,
                                                                       const LanguageModelParams& params) {
  const models::Head head = head_of(params);
  return [config, head, params](const engine::ModelPass& pass) {
    const int64_t tokens = (pass.tokens + pass.ranks - 1) / pass.ranks;  // of a segment
    const int64_t of_second_head = head == models::Head::kPolicyAndValue ? value_head_bytes(config, tokens) : 0;
    const int64_t of_sampler = pass.sampling ? models::portable::Sampler::most_bytes(pass.tokens, config.vocab_size) : 0;
    return of_second_head + of_sampler +
           models::portable::activation_bytes(config, {.training = pass.training,
                                                       .value_head = !models::has_language_head(head),
                                                       .adapters = params.lora.has_value(),
                                                       .tokens = tokens,
                                                       .precision = params.dtype,
                                                       .recompute = recomputes(params, pass.recompute),
                                                       .ranks = pass.ranks});
  };
}

std::function<int64_t(const engine::ModelPass&)> activations_of(const models::ModelConfig& config,
                                                                const LanguageModelParams& params) {
  const models::Head head = head_of(params);
  if (params.device != "cpu") return activations_on_device(config, params);
  const int64_t cores = available_cores();
  std::function<int64_t(int64_t tokens)> of_adapters = [](int64_t) { return 0; };
  if (const auto lora = params.trained().lora) of_adapters = adapter_activations(config, *lora, params.dtype);
  return [config, head, of_adapters, params, cores](const engine::ModelPass& pass) {
    const int64_t tokens = (pass.tokens + pass.ranks - 1) / pass.ranks;  // of a segment
    const int64_t of_second_head = head == models::Head::kPolicyAndValue ? value_head_bytes(config, tokens) : 0;
    return models::activation_bytes(config, {.training = pass.training,
                                             .value_head = !models::has_language_head(head),
                                             .tokens = pass.tokens,
                                             .longest_sample = pass.longest_sample,
                                             .threads = cores,
                                             .ranks = pass.ranks,
                                             .ring = pass.ring,
                                             .expert_ranks = pass.expert_ranks,
                                             .precision = params.dtype,
                                             .recompute = recomputes(params, pass.recompute)})
               .total() +
           (pass.training ? of_adapters(tokens) : 0) + of_second_head;
  };
}

// At most, in float32: adapters are merged into weights that are there anyway.
int64_t saved_folder_bytes(const LanguageModelParams& params, const ParameterBytes& bytes) {
  constexpr int64_t kFloat = 4;
  const bool adapter_alone = params.lora && params.lora->save == models::SavedAdapter::kAdapter;
  return adapter_alone ? bytes.trained : bytes.parameters * kFloat;
}

// What training multiplies apart is merged for sampling, but for a quantised base; on a device products have an order of their
// own.
std::string why_sampling_differs(const LanguageModelParams& params) {
  if (params.lora && !params.quantisation().any()) return "its adapters are merged into the weights that sample";
  return params.device == "cpu" ? "" : "it is on " + params.device;
}

// Adapters of a quantised base stay apart.
int64_t apart_bytes(const models::ModelConfig& config, const LanguageModelParams& params) {
  const bool apart = params.quantisation().any() && params.trained().lora;
  return apart ? packed_adapter_bytes(config, *params.lora) : 0;
}

// What of a version the rank has that has most.
std::function<int64_t(int64_t, int64_t)> part_bytes_of(const models::ModelConfig& config, const LanguageModelParams& params) {
  return [config, precision = params.dtype, quantised = params.quantisation().any(), apart = apart_bytes(config, params)](
             int64_t ranks, int64_t expert_ranks) {
    const models::ColumnShare most{
        .place = static_cast<int>(ranks) - 1, .ranks = static_cast<int>(ranks), .expert_ranks = static_cast<int>(expert_ranks)};
    return models::PackedWeights::bytes_for(config, precision, most, quantised) + apart;
  };
}

// Quantised matrices are shared with the live weights, of which there are none where only samples are drawn.
int64_t published_bytes(const models::ModelConfig& config, const LanguageModelParams& params) {
  const models::QuantisationOptions quantisation = params.quantisation();
  int64_t bytes = models::PackedWeights::bytes_for(config, params.dtype, {}, quantisation.any());
  if (quantisation.any() && !params.optimizer && reads_published(params)) bytes += quantised_matrix_bytes(config, quantisation);
  return bytes + apart_bytes(config, params);
}

std::string why_sampled_alone(const LanguageModelParams& params) {
  return params.device != "cpu" ? "is on " + params.device : std::string();
}

// At most: what is frozen by its name is not sent.
int64_t wire_bytes(const models::ModelConfig& config, const LanguageModelParams& params, const ParameterBytes& bytes) {
  return params.lora ? bytes.trained : frozen_parameter_bytes(config, head_of(params), params.dtype).frozen;
}

// What is trained as it comes, and the rest as it is kept.
int64_t received_bytes(const models::ModelConfig& config, const LanguageModelParams& params, const ParameterBytes& bytes) {
  return params.lora ? bytes.trained + bytes.frozen : frozen_parameter_bytes(config, head_of(params), params.dtype).frozen;
}

// How many numbers each group of the optimizer has, and at last what is in none.
std::vector<engine::WeightGroup> groups_of(const LanguageModelParams& params, const ParameterBytes& bytes) {
  if (!params.optimizer || params.optimizer->groups.empty()) return {};
  const std::vector<models::WeightGroupOptions> options = params.optimizer->options().groups;
  std::vector<engine::WeightGroup> groups;
  for (const models::WeightGroupOptions& group : options) {
    std::vector<std::string> changes;
    if (group.learning_rate_scale != 1) changes.push_back("learning rate x " + real_text(group.learning_rate_scale));
    if (group.weight_decay) changes.push_back("weight decay " + real_text(*group.weight_decay));
    groups.push_back({.text = group.match + " (" + join(changes, ", ") + ")"});
  }
  groups.push_back({.text = "the rest"});
  for (const auto& [name, size] : bytes.trained_weights) groups[models::group_of(name, options)].parameters += size;
  return groups;
}

}  // namespace

models::Head head_of(const LanguageModelParams& params) {
  switch (params.head) {
    case ModelHead::kLanguageModel:
      return models::Head::kLanguageModel;
    case ModelHead::kValue:
      return models::Head::kValue;
    case ModelHead::kPolicyAndValue:
      return models::Head::kPolicyAndValue;
  }
  throw InternalError("unknown head");
}

bool recomputes(const LanguageModelParams& params, bool chosen) {
  return params.activation_checkpointing == RecomputeChoice::kAuto ? chosen
                                                                   : params.activation_checkpointing == RecomputeChoice::kLayer;
}

bool reads_published(const LanguageModelParams& params) {
  return params.device == "cpu" && !models::has_value_head(head_of(params));
}

ParameterBytes bytes_of(const models::ModelConfig& config, const LanguageModelParams& params) {
  return params.optimizer ? parameter_bytes(config, head_of(params), params.dtype, params.trained(), params.quantisation())
                          : frozen_parameter_bytes(config, head_of(params), params.dtype, params.quantisation());
}

namespace {

// Of a mixture whose experts so many ranks share out.
std::function<int64_t(int64_t)> shared_passing_bytes_of(const models::ModelConfig& config, const LanguageModelParams& params) {
  return [config, params](int64_t expert_ranks) {
    return parameter_bytes(config, head_of(params), params.dtype, params.trained(), params.quantisation(), expert_ranks).passing;
  };
}

}  // namespace

engine::ModelFacts facts_of(const models::ModelConfig& config, const LanguageModelParams& params, const ParameterBytes& bytes) {
  const bool trainable = params.optimizer.has_value(), adapts = trainable && params.lora;
  return {
      .parameters = bytes.parameters,
      .idle_parameters = config.idle_parameters(),
      .weight_bytes = bytes.frozen + bytes.trained,
      .common_bytes = params.quantisation().any() ? 0 : bytes.frozen + (adapts ? 0 : bytes.trained),
      .published_bytes = published_bytes(config, params),
      .gradient_bytes = trainable ? bytes.trained : 0,
      .passing_bytes = trainable && !adapts ? bytes.passing : 0,
      .shared_passing_bytes = trainable && !adapts && config.experts.any() ? shared_passing_bytes_of(config, params) : nullptr,
      .optimizer_bytes = trainable ? 2 * bytes.trained : 0,
      .snapshot_bytes = trainable ? 3 * bytes.trained : 0,
      .version_bytes = trainable ? bytes.trained : 0,
      .folder_bytes = trainable ? saved_folder_bytes(params, bytes) : 0,
      .wire_bytes = trainable ? wire_bytes(config, params, bytes) : 0,
      .received_bytes = trainable ? received_bytes(config, params, bytes) : 0,
      .shared_version_bytes = part_bytes_of(config, params),
      .kv_bytes_per_token = models::kv_bytes(config, 1, params.dtype),
      .kv_block_tokens = models::GenerationLimits{}.kv_block_size,
      .max_positions = config.max_positions,
      .max_sampled_positions = config.steady_positions(),
      .sampling_limit = models::limit_of_rotary_scaling(config),
      .reads_published = reads_published(params),
      .sampling_differs = why_sampling_differs(params),
      .activation_bytes = activations_of(config, params),
      .may_recompute = trainable && params.activation_checkpointing == RecomputeChoice::kAuto,
      .trainable = trainable,
      .head = enum_names(ModelHead{})[static_cast<size_t>(params.head)].second,
      .experts = config.experts.any() ? config.experts.count : 0,
      .route_bytes_per_token = models::route_form(config).token_bytes(),
      .key_heads = config.kv_heads,
      .sampled_alone = why_sampled_alone(params),
      .groups = groups_of(params, bytes),
      .has_base = trainable && params.lora && models::has_language_head(head_of(params)),
      .folder = *params.checkpoint,
      .device = params.device};
}

}  // namespace sluice::nodes
