#include "nodes/models/language_model_type.h"

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text/strings.h"
#include "models/adapters/lora.h"
#include "models/devices/device_named.h"
#include "models/folder/folder.h"
#include "models/folder/hub_cache.h"
#include "models/layers/weight_names.h"
#include "models/sample/load_packed.h"
#include "nodes/models/averaged_model.h"
#include "nodes/models/gradients/common_training.h"
#include "nodes/models/language_model.h"
#include "nodes/models/model_device.h"
#include "nodes/models/model_facts.h"
#include "nodes/models/weights/common_weights.h"
#include "nodes/models/weights/remote_publisher.h"
#include "nodes/models/weights/wire_layout.h"

namespace sluice::nodes {
namespace {

SourceSpan place_of(const engine::ModelSpec& spec, const char* key) {
  const engine::Entry* entry = spec.params.find(key);
  return entry != nullptr ? entry->value.where : spec.params.where;
}

// A problem that has no place in a file of a model folder is told at the key.
void report(const UserError& error, const char* kind, const engine::ModelSpec& spec, const char* key, Problems& problems) {
  for (Problem problem : error.problems()) {
    problem.kind = kind;
    if (!problem.where.known()) problem.where = place_of(spec, key);
    problems.push_back(std::move(problem));
  }
}

// A plan needs config.json alone.
void warn_of_weights(const engine::ModelSpec& spec, const LanguageModelParams& params, Problems& problems) {
  try {
    models::check_weights(*params.checkpoint, head_of(params));
  } catch (const UserError& error) {
    const auto first = std::ssize(problems);
    report(error, "weights-unusable", spec, "checkpoint", problems);
    for (auto problem = problems.begin() + first; problem != problems.end(); ++problem) problem->severity = Severity::kWarning;
  }
}

// A key with another value than its default, which another key makes mean nothing.
void refuse(const engine::ModelSpec& spec, const char* key, const std::string& why, const std::string& help, Problems& problems) {
  problems.push_back({.kind = "setting-without-effect",
                      .where = place_of(spec, key),
                      .message = std::string(key) + " of model '" + spec.name.text + "' has no effect: " + why,
                      .caret = {},
                      .notes = {},
                      .help = help});
}

// Keys of a model that is made from another one, by `key`: `why`.
void refuse_beside(const char* key, const std::string& why, const engine::ModelSpec& spec, const LanguageModelParams& params,
                   Problems& problems) {
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
    if (entry.second) refuse(spec, entry.first, why, std::string("remove ") + entry.first + ", or " + key, problems);
  }
}

void report_no_weights(const engine::ModelSpec& spec, Problems& problems) {
  problems.push_back({.kind = "missing-key",
                      .where = spec.params.where,
                      .message = "[models." + spec.name.text + "] needs checkpoint",
                      .caret = {},
                      .notes = {},
                      .help = "add checkpoint = \"...\": a Hugging Face folder: config.json, *.safetensors, tokenizer.json"});
}

void report_unusable(const engine::ModelSpec& spec, const char* key, const std::string& message, const std::string& help,
                     Problems& problems) {
  problems.push_back(
      {.kind = "setting-unusable", .where = place_of(spec, key), .message = message, .caret = {}, .notes = {}, .help = help});
}

// key: which says that weights are quantised.
void refuse_quantised(const engine::ModelSpec& spec, const LanguageModelParams& params, const char* key,
                      const std::string& without, Problems& problems) {
  const std::string model = "model '" + spec.name.text + "'";
  if (params.optimizer && !params.lora)
    report_unusable(spec, key, "the weights of " + model + " are trained, and cannot be quantised",
                    "add lora = { rank = 16 }, whose adapters are trained instead, or " + without, problems);
  if (params.device != "cpu")
    report_unusable(spec, key, model + " is on " + params.device + ", where weights are not quantised",
                    "device = \"cpu\", or " + without, problems);
}

void find_unquantisable(const engine::ModelSpec& spec, const LanguageModelParams& params, Problems& problems) {
  if (params.quantization_group % models::QuantisationOptions::kGroupStep != 0)
    report_unusable(spec, "quantization_group",
                    "quantization_group = " + std::to_string(params.quantization_group) + " is no multiple of 32",
                    "32, 64, 128, ...: small groups are more exact, large ones take less memory", problems);
  if (params.quantization != models::Quantisation::kNone)
    return refuse_quantised(spec, params, "quantization", "remove quantization", problems);
  if (params.quantization_group != LanguageModelParams().quantization_group)
    refuse(spec, "quantization_group", "nothing of it is quantised", "add quantization = \"int4\", or remove it", problems);
}

// What the folder says of itself.
void find_unquantisable_folder(const engine::ModelSpec& spec, const LanguageModelParams& params, Problems& problems) {
  if (!params.stored) return;
  const std::string codes = "the folder holds codes of 4 bits, which are read as they are";
  if (params.quantization != models::Quantisation::kNone) refuse(spec, "quantization", codes, "remove quantization", problems);
  refuse_quantised(spec, params, "checkpoint", "use a folder that is not quantised", problems);
}

void find_contradictions_of_average(const engine::ModelSpec& spec, const LanguageModelParams& params, Problems& problems) {
  if (params.base_of) refuse(spec, "base_of", "it is a moving average", "remove base_of, or ema", problems);
  refuse_beside("ema", "it is the moving average of '" + params.ema->of + "'", spec, params, problems);
  if (params.ema->decay == 1) {
    report_unusable(spec, "ema", "with decay = 1 the average never moves",
                    "a smaller decay, or checkpoint instead of ema: a frozen model", problems);
  }
}

void find_contradictions(const engine::ModelSpec& spec, const LanguageModelParams& params, Problems& problems) {
  if (params.base_of && params.base_of->empty())
    return report_unusable(spec, "base_of", "base_of of model '" + spec.name.text + "' names no model",
                           "name a model with lora, or remove base_of", problems);
  if (params.ema) return find_contradictions_of_average(spec, params, problems);
  if (params.base_of) return refuse_beside("base_of", "it is the base of '" + *params.base_of + "'", spec, params, problems);
  if (!params.checkpoint) return report_no_weights(spec, problems);
  const bool freezes = !params.freeze.empty(), adapts = params.lora.has_value();
  const std::string untrained = "without an optimizer nothing of it is trained";
  if (freezes && !params.optimizer) refuse(spec, "freeze", untrained, "add optimizer, or remove freeze", problems);
  if (adapts && !params.optimizer) refuse(spec, "lora", untrained, "add optimizer, or remove lora", problems);
  if (params.activation_checkpointing == RecomputeChoice::kLayer && !params.optimizer)
    refuse(spec, "activation_checkpointing", untrained, "add optimizer, or remove activation_checkpointing", problems);
  if (params.router_aux_loss > 0 && !params.optimizer)
    refuse(spec, "router_aux_loss", untrained, "add optimizer, or remove router_aux_loss", problems);
  if (freezes && adapts && params.optimizer) {
    refuse(spec, "freeze", "beside lora no weight is trained", "remove freeze; targets in lora say what is adapted", problems);
  }
  find_unquantisable(spec, params, problems);
  if (params.lora && params.lora->save == models::SavedAdapter::kAdapter && params.head == ModelHead::kPolicyAndValue) {
    problems.push_back({.kind = "setting-unusable",
                        .where = place_of(spec, "lora"),
                        .message = "save = \"adapter\" would lose the value head of model '" + spec.name.text + "'",
                        .caret = {},
                        .notes = {"PEFT's format has no language model with a value head"},
                        .help = "save = \"both\" or \"merged\""});
  }
}

void find_untrained_routers(const engine::ModelSpec& spec, const LanguageModelParams& params, const models::ModelConfig& config,
                            Problems& problems) {
  if (params.router_aux_loss == 0 || !params.optimizer || trains_routers(config, head_of(params), params.trained())) return;
  const std::string why = !config.experts.any() ? "it is no mixture of experts, and has no routers"
                          : params.lora         ? "beside lora no router is trained"
                                                : "all its routers are frozen";
  refuse(spec, "router_aux_loss", why, "remove router_aux_loss", problems);
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

// What this rank has of what is sampled from.
models::ColumnShare share_of(const engine::ModelUsage& usage) {
  if (usage.passes == nullptr || !usage.samples_together() || usage.versions.readable == 0) return {};
  return {.place = usage.passes->of(usage.name).place(),
          .ranks = static_cast<int>(usage.sampling_ranks),
          .expert_ranks = static_cast<int>(usage.expert_ranks)};
}

// Shares the weights of usage.base, which leaves them as they are while its adapters are trained.
std::shared_ptr<LanguageModel> base_of(const engine::ModelUsage& usage) {
  const auto trained = std::dynamic_pointer_cast<const LanguageModel>(usage.base);
  SLUICE_CHECK(trained != nullptr, "the base of model " + usage.name + " was not loaded before it");
  const models::Transformer& transformer = trained->forward().transformer();
  const models::Transformer base(transformer.config(), models::without_adapters(transformer.weights()),
                                 {.precision = transformer.compute().precision});
  return std::make_shared<FrozenLanguageModel>(usage.name, trained->text().folder(), base, usage.versions,
                                               FrozenLanguageModel::Weights::kShared, nullptr, share_of(usage));
}

std::shared_ptr<LanguageModel> average_of(const EmaParams& params, const engine::ModelUsage& usage) {
  auto trained = std::dynamic_pointer_cast<const TrainedLanguageModel>(usage.base);
  SLUICE_CHECK(trained != nullptr, "what model " + usage.name + " averages was not loaded before it, to be trained");
  return std::make_shared<AveragedLanguageModel>(usage.name, std::move(trained), params);
}

// Of a model that was loaded as a frozen one: what other ranks train of it.
models::NamedTensors trained_elsewhere(const models::Weights& weights, const TrainedParameters& trained) {
  models::NamedTensors named = weights.named();
  std::erase_if(named, [&](const auto& tensor) {
    const bool is_value_head = trained.lora && tensor.second.is_same(weights.value_head);
    return !is_value_head && !tensor.second.requires_grad() && trained.freezes(tensor.first);
  });
  return named;
}

// Nothing: this rank packs what it samples from for itself, as where that shares what a device or codes hold.
std::optional<InCommon> copies_of_host(const LanguageModelParams& of, const engine::ModelUsage& usage) {
  if (usage.common == nullptr || of.device != "cpu" || of.quantisation().any()) return std::nullopt;
  return InCommon{*usage.common};
}

std::shared_ptr<LanguageModel> received(const LanguageModelParams& of, models::LoadOptions options,
                                        const engine::ModelUsage& usage) {
  options.trainable = false;
  models::Transformer transformer = models::load_transformer(*of.checkpoint, options);
  if (of.lora) prepare(transformer.weights(), of.trained(), usage.seed);
  WireLayout layout(transformer.config(), options.head, of.dtype, trained_elsewhere(transformer.weights(), of.trained()));
  LandedModel landed = landed_model(usage.name, layout, transformer.weights(), publication_ranks(usage), *usage.publications);
  const models::Transformer in_landing(transformer.config(), landed.weights, transformer.compute());
  const std::optional<InCommon> common = copies_of_host(of, usage);
  return std::make_shared<ReceivedLanguageModel>(*of.checkpoint, in_landing, std::move(layout), std::move(landed), usage,
                                                 common ? &*common : nullptr, share_of(usage));
}

std::unique_ptr<WeightPublisher> publisher_to_others(const LanguageModelParams& of, const models::Transformer& transformer,
                                                     const engine::ModelUsage& usage) {
  if (!usage.sent) return nullptr;
  auto trained = transformer.weights().trainable();
  WireLayout layout(transformer.config(), head_of(of), of.dtype, trained);
  return std::make_unique<RemotePublisher>(usage.name, std::move(layout), std::move(trained), publication_ranks(usage),
                                           *usage.publications);
}

// Nothing: this rank has the weights alone, as every rank has quantised ones.
std::optional<CommonWeights> common_weights(const LanguageModelParams& of, const engine::ModelUsage& usage, bool is_updated) {
  if (usage.common == nullptr || of.quantisation().any()) return std::nullopt;
  const models::ModelConfig config = models::read_config(*of.checkpoint);
  return CommonWeights({.model = usage.name,
                        .config = config,
                        .head = head_of(of),
                        .precision = of.dtype,
                        .trained = of.trained(),
                        .is_updated = is_updated},
                       *usage.common);
}

// Null: the host adds gradients. Of several models, which other ranks may come to in another order, it does so always.
engine::DeviceExchange* devices_of(const LanguageModelParams& of, const engine::ModelUsage& usage) {
  if (usage.gradients == nullptr || of.device == "cpu" || !usage.trained_alone) return nullptr;
  return usage.gradients->device_exchange(of.device);
}

std::shared_ptr<LanguageModel> loaded(const LanguageModelParams& of, const engine::ModelUsage& usage) {
  if (of.ema) return average_of(*of.ema, usage);
  if (of.base_of) return base_of(usage);
  if (usage.forwarding == engine::Forwarding::kAsks)
    return std::make_shared<FrozenLanguageModel>(usage.name, *of.checkpoint, models::read_config(*of.checkpoint), of.dtype);
  const bool trained = usage.updated && of.optimizer.has_value();
  const auto checkpointing =
      recomputes(of, usage.recompute) ? models::ActivationCheckpointing::kLayer : models::ActivationCheckpointing::kNone;
  models::LoadOptions options{.head = head_of(of),
                              .random_init = of.init == ModelInit::kRandom,
                              .seed = usage.seed,
                              .trainable = trained,
                              .frozen = [of = of.trained()](const std::string& name) { return of.freezes(name); },
                              .device = models::device_named(of.device).value(),
                              .compute = {of.dtype, checkpointing},
                              .quantisation = of.quantisation(),
                              .narrow_operands = true};
  if (usage.received) return received(of, options, usage);
  if (!usage.has_live_weights(reads_published(of))) {
    return std::make_shared<FrozenLanguageModel>(usage.name, *of.checkpoint, models::load_packed(*of.checkpoint, options),
                                                 options.device);
  }
  std::optional<CommonWeights> common = common_weights(of, usage, trained);
  if (common) options.placed = [&](const auto& weight, const at::Tensor& read) { return common->place(weight, read); };
  models::Transformer transformer = models::load_transformer(*of.checkpoint, options);
  std::optional<CommonTraining> in_common;
  if (common && common->trained().defined()) in_common = common_training(usage.name, common->trained(), *usage.common);
  if (common) common->meet();
  std::optional<InCommon> shared;
  if (common) shared.emplace(InCommon{*usage.common, usage.passes == nullptr, common->bytes_of_others()});
  const InCommon* const of_ranks = shared ? &*shared : nullptr;
  if (!trained) {
    return std::make_shared<FrozenLanguageModel>(usage.name, *of.checkpoint, transformer, usage.versions,
                                                 FrozenLanguageModel::Weights::kOwn, of_ranks, share_of(usage));
  }
  prepare(transformer.weights(), of.trained(), usage.seed);
  transformer.set_routers(std::make_shared<models::RouterTraining>(of.router_aux_loss));
  const Training training{.optimizer = of.optimizer->options(),
                          .learning_rate = of.optimizer->learning_rate_of(usage.iterations),
                          .saved_adapter = of.lora ? of.lora->save : models::SavedAdapter::kBoth,
                          .world = usage.trained_by(),
                          .slots = usage.world.mine(),
                          .shard_optimizer = usage.shard_optimizer,
                          .gradients = usage.gradients,
                          .devices = devices_of(of, usage),
                          .common = in_common};
  return std::make_shared<TrainedLanguageModel>(usage.name, *of.checkpoint, transformer, training, usage.versions,
                                                publisher_to_others(of, transformer, usage), of_ranks, share_of(usage));
}

}  // namespace

LanguageModelType::LanguageModelType() {
  using P = LanguageModelParams;
  params_.param("checkpoint", &P::checkpoint)
      .found_by([](const std::string& text, const std::filesystem::path& path) { return models::model_folder(text, path); })
      .doc(
          "a Hugging Face folder: config.json, *.safetensors, tokenizer.json; or the id of a model of the Hub, with @REVISION if "
          "wanted, that lies in Hugging Face's cache");
  params_.param("base_of", &P::base_of)
      .doc("instead of a checkpoint: a model with lora, whose weights without what was learned this one is");
  params_.table("ema", &P::ema, ema_params())
      .doc("instead of a checkpoint: it is the moving average of the weights of a model that is trained");
  params_.param("head", &P::head)
      .doc("\"value\" gives every token one number: a critic; \"policy+value\" does so beside the language model's head");
  params_.param("init", &P::init).doc("\"random\" takes only config.json and the tokenizer of the folder");
  params_.param("dtype", &P::dtype)
      .doc(
          "operands of products, embedded tokens, the KV cache, and matrices and embedding that are not trained; sums, norms, "
          "softmax and weights that are trained stay float32");
  params_.param("device", &P::device).doc("where its weights are and what reads them computes: \"cpu\" or \"cuda:N\"");
  params_.param("activation_checkpointing", &P::activation_checkpointing)
      .harmless()
      .doc(
          "\"layer\" keeps each layer's input alone for the backward and computes the rest again: a third more work, far less "
          "memory; \"auto\" does so where memory has no room for the rest");
  params_.table("optimizer", &P::optimizer, optimizer_params()).doc("how the model is trained; without it, it is frozen");
  params_.param("router_aux_loss", &P::router_aux_loss)
      .at_least(0)
      .doc(
          "of a mixture of experts: weight of a loss that spreads the tokens of each sample over the experts of a layer, added "
          "to whatever objective trains the model");
  params_.param("freeze", &P::freeze).doc("patterns of the names of weights that are not trained");
  params_.table("lora", &P::lora, lora_params()).doc("low-rank adapters that are trained instead of the weights");
  params_.param("quantization", &P::quantization)
      .doc(
          "\"int8\" or \"int4\" hold the matrices of the layers of a model that is frozen, or trained by lora, as codes of so "
          "many bits; the model computes with their values in its dtype");
  params_.param("quantization_group", &P::quantization_group)
      .between(32, 65536)
      .doc("so many inputs of an output share a scale, a multiple of 32; fewer are more exact");
}

std::shared_ptr<const void> LanguageModelType::bind(const engine::ModelSpec& spec, engine::BindContext& context,
                                                    engine::ModelFacts& facts) const {
  const size_t before = context.problems.size();
  auto params = std::make_shared<LanguageModelParams>();
  params_.erased().bind(params.get(), spec.params, context);
  if (context.problems.size() == before) find_contradictions(spec, *params, context.problems);
  if (context.problems.size() > before) return nullptr;
  if (params->optimizer) {
    const engine::Value& written = spec.params.find("optimizer")->value;
    forget_unused(*params->optimizer, written);
    check_schedule(spec.name.text, written, *params->optimizer, context.iterations, context.problems);
    if (has_errors({context.problems.begin() + static_cast<ptrdiff_t>(before), context.problems.end()})) return nullptr;
  }
  if (params->base_of || params->ema) {
    (params->ema ? facts.average_of : facts.base_of) = params->ema ? params->ema->of : *params->base_of;
    return params;
  }
  if (!check_device(params->device, spec, context.known, context.problems)) return nullptr;
  std::optional<models::ModelConfig> config;
  try {
    config = models::read_config(*params->checkpoint);
    if (params->init == ModelInit::kCheckpoint) params->stored = models::stored_quantisation(*params->checkpoint);
  } catch (const UserError& error) {
    report(error, "model-folder-unusable", spec, "checkpoint", context.problems);
    return nullptr;
  }
  find_unquantisable_folder(spec, *params, context.problems);
  if (params->init == ModelInit::kCheckpoint) warn_of_weights(spec, *params, context.problems);
  try {
    const ParameterBytes bytes = bytes_of(*config, *params);
    if (params->lora) check_first_values(*config, head_of(*params), *params->lora);
    facts = facts_of(*config, *params, bytes);
    if (params->optimizer) {
      std::vector<std::string> names;
      for (const auto& [name, size] : bytes.trained_weights) names.push_back(name);
      check_groups(spec.params.find("optimizer")->value, *params->optimizer, names, context.problems);
      facts.follows_iterations = params->optimizer->follows_iterations();
      facts.learning_rate = params->optimizer->learning_rate_of(context.iterations);
    }
  } catch (const UserError& error) {
    report(error, "setting-unusable", spec, params->lora ? "lora" : "freeze", context.problems);
    return nullptr;
  }
  find_untrained_routers(spec, *params, *config, context.problems);
  if (has_errors({context.problems.begin() + static_cast<ptrdiff_t>(before), context.problems.end()})) return nullptr;
  if (params->optimizer && params->optimizer->learning_rate == 0) warn_of_no_step(spec, context.problems);
  return params;
}

std::shared_ptr<engine::Model> LanguageModelType::load(const std::shared_ptr<const void>& params,
                                                       const engine::ModelUsage& usage) const {
  std::shared_ptr<LanguageModel> model = loaded(*static_cast<const LanguageModelParams*>(params.get()), usage);
  if (usage.forwarding != engine::Forwarding::kNone)
    model->forward_passes(usage);
  else if (usage.passes != nullptr)
    model->share_passes(*usage.passes);
  return model;
}

}  // namespace sluice::nodes
