#include "tests/nodes/tiny_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/from_blob.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <functional>
#include <optional>
#include <stdexcept>

#include "base/files/file.h"
#include "base/json/json.h"
#include "base/numbers/random.h"
#include "models/folder/folder.h"
#include "nodes/columns/columns.h"
#include "nodes/models/gradients/common_training.h"
#include "nodes/models/weights/common_weights.h"

namespace sluice::nodes::testing {

namespace {

namespace fs = std::filesystem;

Json config_json() {
  return {{"architectures", {"LlamaForCausalLM"}},
          {"model_type", "llama"},
          {"vocab_size", TinyFolder::kVocabulary},
          {"hidden_size", TinyFolder::kHidden},
          {"intermediate_size", TinyFolder::kIntermediate},
          {"num_hidden_layers", TinyFolder::kLayers},
          {"num_attention_heads", TinyFolder::kHeads},
          {"num_key_value_heads", TinyFolder::kKvHeads},
          {"head_dim", TinyFolder::kHeadDim},
          {"max_position_embeddings", TinyFolder::kPositions},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 10000.0},
          {"hidden_act", "silu"},
          {"tie_word_embeddings", false},
          {"initializer_range", 0.3},  // large, so that the distributions are far from uniform
          {"eos_token_id", 0}};
}

Json tokenizer_json() {
  Json vocabulary = {{"<eos>", 0}, {"\u0120", 1}};  // U+0120 is a space in the byte alphabet
  for (char c = '!'; c <= '~'; ++c) vocabulary[std::string(1, c)] = vocabulary.size();
  return {{"version", "1.0"},
          {"added_tokens",
           {{{"id", 0},
             {"content", "<eos>"},
             {"single_word", false},
             {"lstrip", false},
             {"rstrip", false},
             {"normalized", false},
             {"special", true}}}},
          {"normalizer", nullptr},
          {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", true}}},
          {"post_processor", nullptr},
          {"decoder", {{"type", "ByteLevel"}, {"add_prefix_space", true}, {"trim_offsets", true}, {"use_regex", true}}},
          {"model", {{"type", "BPE"}, {"vocab", vocabulary}, {"merges", Json::array()}}}};
}

void randomize(at::Tensor& tensor, uint64_t seed) {
  RandomStream random(seed, 0);
  const at::NoGradGuard no_gradient;
  const at::Tensor host = tensor.detach().to(at::kCPU);
  float* values = host.mutable_data_ptr<float>();
  for (int64_t i = 0; i < host.numel(); ++i) values[i] = static_cast<float>(0.3 * random.normal());
  tensor.copy_(host);
}

std::optional<CommonWeights> common_weights(const fs::path& folder, const TinyOptions& options, models::Head head) {
  if (options.common == nullptr) return std::nullopt;
  const models::ModelConfig config = models::read_config(folder);
  return CommonWeights({.model = "actor",
                        .config = config,
                        .head = head,
                        .precision = options.precision,
                        .trained = options.trained,
                        .is_updated = options.optimizer.has_value(),
                        .floats_of_bucket = options.floats_of_bucket},
                       *options.common);
}

std::function<at::Tensor(const models::ExpectedWeight&, const at::Tensor&)> placed_in(std::optional<CommonWeights>& common) {
  if (!common) return {};
  return [&common](const auto& weight, const at::Tensor& read) { return common->place(weight, read); };
}

}  // namespace

TinyFolder::TinyFolder() {
  static std::atomic<int> count{0};
  path_ = fs::temp_directory_path() / ("sluice-tiny-" + std::to_string(getpid()) + "-" + std::to_string(count++));
  fs::create_directories(path_);
  write_file_atomically(path_ / "config.json", config_json().dump());
  write_file_atomically(path_ / "tokenizer.json", tokenizer_json().dump());
}

TinyFolder::~TinyFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

void make_mixture(const TinyFolder& folder, int64_t experts, const std::vector<int64_t>& dense_layers) {
  Json config = read_json(folder.path() / "config.json");
  config.update({{"architectures", {"Qwen2MoeForCausalLM"}},
                 {"model_type", "qwen2_moe"},
                 {"num_experts", experts},
                 {"num_experts_per_tok", 2},
                 {"moe_intermediate_size", 40},
                 {"shared_expert_intermediate_size", 48},
                 {"mlp_only_layers", dense_layers},
                 {"qkv_bias", false}});
  config.erase("head_dim");  // hidden size by heads, as it was
  write_file_atomically(folder.path() / "config.json", config.dump());
}

std::shared_ptr<LanguageModel> tiny_model(const fs::path& folder, const TinyOptions& options) {
  const models::Head head = options.both_heads   ? models::Head::kPolicyAndValue
                            : options.value_head ? models::Head::kValue
                                                 : models::Head::kLanguageModel;
  const auto frozen = [&](const std::string& weight) { return options.trained.freezes(weight); };
  std::optional<CommonWeights> common = common_weights(folder, options, head);
  const auto checkpointing = options.recompute ? models::ActivationCheckpointing::kLayer : models::ActivationCheckpointing::kNone;
  auto transformer = models::load_transformer(folder, {.head = head,
                                                       .random_init = true,
                                                       .seed = options.seed,
                                                       .trainable = options.optimizer.has_value(),
                                                       .frozen = frozen,
                                                       .device = options.device,
                                                       .compute = {options.precision, checkpointing},
                                                       .placed = placed_in(common),
                                                       .narrow_operands = true});
  std::optional<CommonTraining> in_common;
  if (common && common->trained().defined()) in_common = common_training("actor", common->trained(), *options.common);
  if (common) common->meet();
  std::optional<InCommon> shared;
  if (common) shared.emplace(InCommon{*options.common, true, common->bytes_of_others()});
  const InCommon* const of_ranks = shared ? &*shared : nullptr;
  if (models::has_value_head(head)) randomize(transformer.weights().value_head, options.seed);
  if (options.optimizer) {
    prepare(transformer.weights(), options.trained, options.seed);
    transformer.set_routers(std::make_shared<models::RouterTraining>(options.router_aux_loss));
  }
  const std::string name = options.value_head ? "critic" : "actor";
  const engine::ModelVersions versions{.readable = options.value_head ? 0 : options.readable_versions,
                                       .saved = options.saved_versions};
  if (!options.optimizer) {
    return std::make_shared<FrozenLanguageModel>(name, folder, transformer, versions, FrozenLanguageModel::Weights::kOwn,
                                                 of_ranks, options.share);
  }
  const Training training{.optimizer = *options.optimizer,
                          .learning_rate = {},
                          .saved_adapter = options.trained.lora ? options.trained.lora->save : models::SavedAdapter::kBoth,
                          .world = options.world,
                          .shard_optimizer = options.shard_optimizer,
                          .gradients = options.gradients,
                          .floats_of_bucket = options.floats_of_bucket,
                          .common = in_common};
  return std::make_shared<TrainedLanguageModel>(name, folder, transformer, training, versions, nullptr, of_ranks, options.share);
}

TrainedModel& trained(LanguageModel& model) { return dynamic_cast<TrainedLanguageModel&>(model).trained(); }

void publish(LanguageModel& model, int64_t version) { trained(model).publisher().publish(version); }

void save_model(const LanguageModel& model, const fs::path& folder) {
  const fs::path whole = folder.string() + ".new";  // the model may have come from `folder`
  models::write_folder(model.forward().transformer(), model.text().folder(), whole, {});
  fs::remove_all(folder);
  fs::rename(whole, folder);
}

std::vector<float> all_weights(const LanguageModel& model) {
  std::vector<float> all;
  for (const auto& [name, tensor] : model.forward().transformer().weights().named()) {
    const at::Tensor host = tensor.detach().to(at::kCPU, at::kFloat);
    all.insert(all.end(), host.const_data_ptr<float>(), host.const_data_ptr<float>() + host.numel());
  }
  return all;
}

float first_embedding(const models::PackedWeights& weights) {
  std::vector<float> row(static_cast<size_t>(TinyFolder::kHidden));
  weights.embedding_row(0, row.data());
  return row[0];
}

void shift_weights(LanguageModel& model, float amount) {
  const at::NoGradGuard no_gradient;
  for (const auto& [name, tensor] : model.forward().transformer().weights().named()) tensor.add_(amount);
}

std::vector<float> floats(const engine::NodeOutcome& outcome, const std::string& column) {
  const auto found = std::ranges::find_if(outcome.columns, [&](const auto& written) { return written.spec.name == column; });
  if (found == outcome.columns.end()) throw std::out_of_range(column);
  const auto entries = found->data.entries<float>();
  return {entries.begin(), entries.end()};
}

double metric(const engine::MetricRow& row, const std::string& name) {
  const auto found = std::ranges::find_if(row, [&](const auto& figure) { return figure.first == name; });
  if (found == row.end()) throw std::out_of_range(name);
  return found->second;
}

engine::Group group_of(const std::vector<TinySample>& samples) {
  engine::Group group;
  for (const TinySample& sample : samples) group.layout.add_sample(static_cast<int64_t>(sample.tokens.size()), sample.actions);
  group.layout.end_group();
  auto next = group.write(columns::kTokens).begin();
  for (const TinySample& sample : samples) next = std::ranges::copy(sample.tokens, next).out;
  return group;
}

std::vector<engine::Group> mixed_groups() {
  return {group_of({{{5, 17, 42, 8, 11, 90}, 3}, {{5, 17, 42, 33}, 1}}), group_of({{{60, 61, 7, 7, 7, 13, 2, 81}, 5}}),
          group_of({{{30, 31}, 1}, {{30, 88, 14, 9, 25}, 4}, {{30, 31, 32, 33, 34, 35, 36}, 2}}),
          group_of({{{71, 3, 19, 55, 6}, 2}, {{71, 3, 44}, 0}})};
}

}  // namespace sluice::nodes::testing
