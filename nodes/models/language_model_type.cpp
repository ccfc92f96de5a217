#include "nodes/models/language_model_type.h"

#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "base/error.h"
#include "models/folder/folder.h"
#include "nodes/models/load_model.h"
#include "nodes/models/model_contradictions.h"
#include "nodes/models/model_device.h"
#include "nodes/models/model_facts.h"
#include "nodes/models/model_problems.h"
#include "nodes/models/unquantisable.h"

namespace sluice::nodes {
namespace {

void check_optimizer(const engine::ModelSpec& spec, OptimizerParams& optimizer, engine::BindContext& context) {
  const engine::Value& written = spec.params.find("optimizer")->value;
  forget_unused(optimizer, written);
  check_schedule(spec.name.text, written, optimizer, context.iterations, context.problems);
}

// A plan needs config.json alone.
void warn_of_weights(const LanguageModelParams& params, ModelProblems& problems) {
  try {
    models::check_weights(*params.checkpoint, head_of(params));
  } catch (const UserError& error) {
    problems.thrown(error, "weights-unusable", "checkpoint", Severity::kWarning);
  }
}

// Nothing: it cannot be used, which was reported.
std::optional<models::ModelConfig> read_folder(LanguageModelParams& params, ModelProblems& problems) {
  std::optional<models::ModelConfig> config;
  try {
    config = models::read_config(*params.checkpoint);
    if (params.init == ModelInit::kCheckpoint) params.stored = models::stored_quantisation(*params.checkpoint);
  } catch (const UserError& error) {
    problems.thrown(error, "model-folder-unusable", "checkpoint");
    return std::nullopt;
  }
  find_unquantisable_folder(params, problems);
  if (params.init == ModelInit::kCheckpoint) warn_of_weights(params, problems);
  return config;
}

// What the optimizer adds to the facts of a model with these weights.
void add_facts_of_optimizer(const engine::ModelSpec& spec, const OptimizerParams& optimizer, const ParameterBytes& bytes,
                            engine::BindContext& context, engine::ModelFacts& facts) {
  std::vector<std::string> names;
  for (const auto& [name, size] : bytes.trained_weights) names.push_back(name);
  check_groups(spec.params.find("optimizer")->value, optimizer, names, context.problems);
  facts.follows_iterations = optimizer.follows_iterations();
  facts.learning_rate = optimizer.learning_rate_of(context.iterations);
}

// False: there are none, which was reported.
bool find_facts(const engine::ModelSpec& spec, const LanguageModelParams& params, const models::ModelConfig& config,
                engine::BindContext& context, engine::ModelFacts& facts) {
  try {
    const ParameterBytes bytes = bytes_of(config, params);
    if (params.lora) check_first_values(config, head_of(params), *params.lora);
    facts = facts_of(config, params, bytes);
    if (params.optimizer) add_facts_of_optimizer(spec, *params.optimizer, bytes, context, facts);
    return true;
  } catch (const UserError& error) {
    ModelProblems(spec, context.problems).thrown(error, "setting-unusable", params.lora ? "lora" : "freeze");
    return false;
  }
}

void warn_of_no_step(const engine::ModelSpec& spec, Problems& problems) {
  const engine::Table& optimizer = std::get<engine::Table>(spec.params.find("optimizer")->value.data);
  problems.push_back({.kind = "optimizer-without-effect",
                      .where = optimizer.find("learning_rate")->value.where,
                      .message = "learning_rate = 0: training changes no weight of model '" + spec.name.text + "'",
                      .caret = {},
                      .notes = {},
                      .help = "set learning_rate, or remove optimizer and the node that trains the model",
                      .severity = Severity::kWarning});
}

}  // namespace

std::shared_ptr<const void> LanguageModelType::bind(const engine::ModelSpec& spec, engine::BindContext& context,
                                                    engine::ModelFacts& facts) const {
  const auto before = std::ssize(context.problems);
  const auto has_new_errors = [&] { return has_errors({context.problems.begin() + before, context.problems.end()}); };
  ModelProblems problems(spec, context.problems);
  auto params = std::make_shared<LanguageModelParams>();
  params_.erased().bind(params.get(), spec.params, context);
  if (std::ssize(context.problems) == before) find_contradictions(*params, problems);
  if (std::ssize(context.problems) > before) return nullptr;
  if (params->optimizer) check_optimizer(spec, *params->optimizer, context);
  if (has_new_errors()) return nullptr;
  if (params->base_of || params->ema) {
    (params->ema ? facts.average_of : facts.base_of) = params->ema ? params->ema->of : *params->base_of;
    return params;
  }
  if (!check_device(params->device, context.known, problems)) return nullptr;
  const std::optional<models::ModelConfig> config = read_folder(*params, problems);
  if (!config || !find_facts(spec, *params, *config, context, facts)) return nullptr;
  find_untrained_routers(*params, *config, problems);
  if (has_new_errors()) return nullptr;
  if (params->optimizer && params->optimizer->learning_rate == 0) warn_of_no_step(spec, context.problems);
  return params;
}

std::shared_ptr<engine::Model> LanguageModelType::load(const std::shared_ptr<const void>& params,
                                                       const engine::ModelUsage& usage) const {
  return load_model(*static_cast<const LanguageModelParams*>(params.get()), usage);
}

}  // namespace sluice::nodes
