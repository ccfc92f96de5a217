#include "nodes/rollout/generate_options.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "nodes/models/model_parts.h"

namespace sluice::nodes {
namespace {

std::vector<int64_t> ends_of(const GenerateParams& params, const SampledWeights& model, const ModelText& text) {
  if (params.ignore_end_of_sequence) return {};
  return sequence_ends(model.config(), text.tokenizer(), text.folder());
}

std::shared_ptr<const Environment> environment_of(const GenerateParams& params, const std::shared_ptr<const ModelText>& text) {
  if (!params.has_environment()) return nullptr;
  SLUICE_CHECK(params.environment.object != nullptr, "an environment that was not made");
  std::shared_ptr<const Environment> of_model = params.environment.object->for_model(text);
  return of_model ? of_model : params.environment.object;
}

// The step of one sample takes as long as reading the weights, and a few rows more hardly longer. Those of several samples cost
// more, and hold up the one among them that takes longest.
models::DraftLimits drafts_of(const GenerateParams& params) {
  if (params.speculation == Speculation::kNone) return {};
  return {.tokens = params.speculation_tokens, .samples = params.speculation == Speculation::kAuto ? 1 : 0};
}

int64_t block_bytes_of(const SampledWeights& model, int64_t block_size) {
  return models::kv_bytes(models::heads_of(model.config(), model.share().ranks), block_size, model.precision());
}

}  // namespace

std::vector<std::string> all_turn_ends(const GenerateParams& params) {
  std::vector<std::string> ends = params.turn_ends;
  if (!params.has_environment() || !params.environment.object) return ends;
  for (std::string& own : params.environment.object->turn_ends()) ends.push_back(std::move(own));
  return ends;
}

int64_t step_tokens(const GenerateParams& params) {
  return std::max(models::GenerationLimits{}.max_step_tokens, params.max_running_samples);
}

models::GenerationOptions generation_options(const GenerateParams& params, const SampledWeights& model,
                                             const SampledWeights* draft, const ModelText& text) {
  models::GenerationOptions options;
  options.sampling = {.temperature = params.temperature.at(0),
                      .top_k = params.top_k,
                      .top_p = params.top_p,
                      .min_p = params.min_p,
                      .repetition_penalty = params.repetition_penalty,
                      .presence_penalty = params.presence_penalty,
                      .frequency_penalty = params.frequency_penalty};
  options.precision = model.precision();
  options.device = model.device();
  if (SamplingLead* const lead = model.lead()) options.together = lead->steps();
  options.end_of_sequence = ends_of(params, model, text);
  options.keeps_routes = params.routes;
  if (draft != nullptr)
    options.draft = models::DraftOptions{.config = draft->config(), .precision = draft->precision(), .device = draft->device()};
  return options;
}

models::GenerationLimits generation_limits(const GenerateParams& params, const SampledWeights& model, const SampledWeights* draft,
                                           const engine::NodeResources& resources) {
  const int64_t pool_bytes = resources.kv_bytes;
  models::GenerationLimits limits;
  if (resources.admission == engine::Admission::kOnDemand) limits.admission = models::KvAdmission::kOnDemand;
  limits.max_running_samples = params.max_running_samples;
  limits.max_step_tokens = step_tokens(params);
  const int64_t routes = params.routes ? limits.kv_block_size * models::route_form(model.config()).token_bytes() : 0;
  const int64_t of_draft = draft == nullptr ? 0 : block_bytes_of(*draft, limits.kv_block_size);
  limits.kv_blocks = pool_bytes / (block_bytes_of(model, limits.kv_block_size) + routes + of_draft);
  const int64_t worst_sample = params.max_prompt_tokens + params.max_new_tokens;
  limits.drafts = drafts_of(params);
  SLUICE_CHECK(limits.kv_blocks * limits.kv_block_size >= worst_sample, "a KV pool of " + std::to_string(pool_bytes) +
                                                                            " bytes does not hold one sample of " +
                                                                            std::to_string(worst_sample) + " tokens");
  return limits;
}

TurnRules turn_rules(const GenerateParams& params, const std::shared_ptr<const ModelText>& text,
                     const models::GenerationOptions& options, const engine::NodeResources& resources) {
  return {.stop = params.stop,
          .turn_ends = all_turn_ends(params),
          .environment = environment_of(params, text),
          .max_turns = params.max_turns,
          .max_new_tokens = params.max_new_tokens,
          .end_of_sequence = options.end_of_sequence,
          .outside = resources.outside,
          .node = resources.node};
}

}  // namespace sluice::nodes
