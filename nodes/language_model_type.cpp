#include "nodes/language_model_type.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>

#include "base/error.h"
#include "models/training/activation_bytes.h"
#include "models/generation/generation.h"
#include "models/generation/kv_cache.h"
#include "models/folder/weight_names.h"
#include "nodes/language_model.h"

namespace sluice::nodes {

namespace {

engine::ParamSet<OptimizerParams> optimizer_params() {
  engine::ParamSet<OptimizerParams> set;
  set.param("type", &OptimizerParams::type).doc("decoupled weight decay, moments in float32");
  set.param("learning_rate", &OptimizerParams::learning_rate).required().at_least(0).doc("step size; constant over the run");
  set.param("beta1", &OptimizerParams::beta1).between(0, 0.999999).doc("decay of the mean of the gradient");
  set.param("beta2", &OptimizerParams::beta2).between(0, 0.999999).doc("decay of the mean of its square");
  set.param("epsilon", &OptimizerParams::epsilon).above(0).doc("added to the root of the mean square");
  set.param("weight_decay", &OptimizerParams::weight_decay)
      .at_least(0)
      .doc("share of a weight, times the learning rate, taken off at each step");
  set.param("clip_grad_norm", &OptimizerParams::clip_grad_norm)
      .at_least(0)
      .doc("largest norm of all gradients together; 0 turns clipping off");
  return set;
}

int64_t parameter_count(const models::ModelConfig& config, bool value_head) {
  models::Weights shapes_only;
  int64_t total = 0;
  for (const models::ExpectedWeight& weight : models::expected_weights(config, value_head, shapes_only)) {
    int64_t count = 1;
    for (const int64_t size : weight.shape) count *= size;
    total += count;
  }
  return total;
}

// An executor has at most all cores; how many, the pipeline decides.
std::function<int64_t(bool, int64_t, int64_t)> activations_of(const models::ModelConfig& config, bool value_head) {
  const auto cores = static_cast<int64_t>(std::max(1u, std::thread::hardware_concurrency()));
  return [config, value_head, cores](bool training, int64_t tokens, int64_t longest_sample) {
    return models::activation_bytes(config, {.training = training,
                                             .value_head = value_head,
                                             .tokens = tokens,
                                             .longest_sample = longest_sample,
                                             .threads = cores})
        .total();
  };
}

engine::ModelFacts facts_of(const models::ModelConfig& config, const LanguageModelParams& params) {
  constexpr int64_t kFloat = 4;
  const int64_t parameters = parameter_count(config, params.head == ModelHead::kValue);
  const bool trainable = params.optimizer.has_value();
  return {.parameters = parameters,
          .weight_bytes = parameters * kFloat,
          .gradient_bytes = trainable ? parameters * kFloat : 0,
          .optimizer_bytes = trainable ? parameters * 2 * kFloat : 0,
          .kv_bytes_per_token = models::kv_bytes(config, 1),
          .kv_block_tokens = models::GenerationLimits{}.kv_block_size,
          .max_positions = config.max_positions,
          .max_sampled_positions = config.steady_positions(),
          .sampling_limit = models::limit_of_rotary_scaling(config),
          .activation_bytes = activations_of(config, params.head == ModelHead::kValue),
          .trainable = trainable,
          .head = enum_names(ModelHead{})[static_cast<size_t>(params.head)].second};
}

// What is wrong with a folder is told at the key that names it; a problem that has a place in a file of the folder keeps it.
void report(const UserError& error, const SourceSpan& checkpoint, Problems& problems) {
  for (Problem problem : error.problems()) {
    problem.kind = "model-folder-unusable";
    if (!problem.where.known()) problem.where = checkpoint;
    problems.push_back(std::move(problem));
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

std::optional<models::AdamWOptions> optimizer_options(const LanguageModelParams& params) {
  if (!params.optimizer) return std::nullopt;
  const OptimizerParams& from = *params.optimizer;
  return models::AdamWOptions{.learning_rate = from.learning_rate,
                              .beta1 = from.beta1,
                              .beta2 = from.beta2,
                              .eps = from.epsilon,
                              .weight_decay = from.weight_decay,
                              .clip_grad_norm = from.clip_grad_norm};
}

}  // namespace

LanguageModelType::LanguageModelType() {
  using P = LanguageModelParams;
  params_.param("checkpoint", &P::checkpoint).required().doc("a Hugging Face folder: config.json, *.safetensors, tokenizer.json");
  params_.param("head", &P::head).doc("\"value\" gives every token one number: a critic");
  params_.param("init", &P::init).doc("\"random\" takes only config.json and the tokenizer of the folder");
  params_.param("dtype", &P::dtype)
      .doc("operands of products and the KV cache; sums, norms, softmax and the weights that are trained stay float32");
  params_.table("optimizer", &P::optimizer, optimizer_params()).doc("how the model is trained; without it, it is frozen");
}

std::shared_ptr<const void> LanguageModelType::bind(const engine::ModelSpec& spec, engine::BindContext& context,
                                                    engine::ModelFacts& facts) const {
  const size_t before = context.problems.size();
  auto params = std::make_shared<LanguageModelParams>();
  params_.erased().bind(params.get(), spec.params, context);
  if (context.problems.size() > before) return nullptr;
  try {
    facts = facts_of(models::read_config(params->checkpoint), *params);
  } catch (const UserError& error) {
    report(error, spec.params.find("checkpoint")->value.where, context.problems);
    return nullptr;
  }
  if (params->optimizer && params->optimizer->learning_rate == 0) warn_of_no_step(spec, context.problems);
  return params;
}

std::shared_ptr<engine::Model> LanguageModelType::load(const std::shared_ptr<const void>& params,
                                                       const engine::ModelUsage& usage) const {
  const auto& of = *static_cast<const LanguageModelParams*>(params.get());
  const bool trained = usage.updated && of.optimizer.has_value();
  models::Transformer transformer = models::Transformer::load(
      of.checkpoint, {.head = of.head == ModelHead::kValue ? models::Head::kValue : models::Head::kLanguageModel,
                      .random_init = of.init == ModelInit::kRandom,
                      .seed = usage.seed,
                      .trainable = trained});
  return std::make_shared<LanguageModel>(usage.name, of.checkpoint, std::move(transformer),
                                         trained ? optimizer_options(of) : std::nullopt, usage.kept_versions);
}

}  // namespace sluice::nodes
