#include "nodes/models/load_model.h"

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/adapters/lora.h"
#include "models/devices/device_named.h"
#include "models/folder/folder.h"
#include "models/layers/weight_names.h"
#include "models/sample/load_packed.h"
#include "nodes/models/averaged_model.h"
#include "nodes/models/gradients/common_training.h"
#include "nodes/models/model_facts.h"
#include "nodes/models/weights/common_weights.h"
#include "nodes/models/weights/remote_publisher.h"
#include "nodes/models/weights/wire_layout.h"

namespace sluice::nodes {
namespace {

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

models::LoadOptions load_options(const LanguageModelParams& of, const engine::ModelUsage& usage) {
  const auto checkpointing =
      recomputes(of, usage.recompute) ? models::ActivationCheckpointing::kLayer : models::ActivationCheckpointing::kNone;
  return {.head = head_of(of),
          .random_init = of.init == ModelInit::kRandom,
          .seed = usage.seed,
          .trainable = usage.updated && of.optimizer.has_value(),
          .frozen = [of = of.trained()](const std::string& name) { return of.freezes(name); },
          .device = models::device_named(of.device).value(),
          .compute = {of.dtype, checkpointing},
          .quantisation = of.quantisation(),
          .narrow_operands = true};
}

// `in_common`: what ranks have in common of what is trained; `shared`: of the weights.
std::shared_ptr<LanguageModel> to_be_trained(const LanguageModelParams& of, models::Transformer& transformer,
                                             const engine::ModelUsage& usage, const std::optional<CommonTraining>& in_common,
                                             const InCommon* shared) {
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
                                                publisher_to_others(of, transformer, usage), shared, share_of(usage));
}

// In memory of this rank, or in common with others.
std::shared_ptr<LanguageModel> with_live_weights(const LanguageModelParams& of, models::LoadOptions options,
                                                 const engine::ModelUsage& usage) {
  std::optional<CommonWeights> common = common_weights(of, usage, options.trainable);
  if (common) options.placed = [&](const auto& weight, const at::Tensor& read) { return common->place(weight, read); };
  models::Transformer transformer = models::load_transformer(*of.checkpoint, options);
  std::optional<CommonTraining> in_common;
  if (common && common->trained().defined()) in_common = common_training(usage.name, common->trained(), *usage.common);
  if (common) common->meet();
  std::optional<InCommon> shared;
  if (common) shared.emplace(InCommon{*usage.common, usage.passes == nullptr, common->bytes_of_others()});
  const InCommon* const of_ranks = shared ? &*shared : nullptr;
  if (options.trainable) return to_be_trained(of, transformer, usage, in_common, of_ranks);
  return std::make_shared<FrozenLanguageModel>(usage.name, *of.checkpoint, transformer, usage.versions,
                                               FrozenLanguageModel::Weights::kOwn, of_ranks, share_of(usage));
}

std::shared_ptr<LanguageModel> loaded(const LanguageModelParams& of, const engine::ModelUsage& usage) {
  if (of.ema) return average_of(*of.ema, usage);
  if (of.base_of) return base_of(usage);
  if (usage.forwarding == engine::Forwarding::kAsks)
    return std::make_shared<FrozenLanguageModel>(usage.name, *of.checkpoint, models::read_config(*of.checkpoint), of.dtype);
  const models::LoadOptions options = load_options(of, usage);
  if (usage.received) return received(of, options, usage);
  if (usage.has_live_weights(reads_published(of))) return with_live_weights(of, options, usage);
  return std::make_shared<FrozenLanguageModel>(usage.name, *of.checkpoint, models::load_packed(*of.checkpoint, options),
                                               options.device);
}

}  // namespace

std::shared_ptr<LanguageModel> load_model(const LanguageModelParams& params, const engine::ModelUsage& usage) {
  std::shared_ptr<LanguageModel> model = loaded(params, usage);
  if (usage.forwarding != engine::Forwarding::kNone)
    model->forward_passes(usage);
  else if (usage.passes != nullptr)
    model->share_passes(*usage.passes);
  return model;
}

}  // namespace sluice::nodes
