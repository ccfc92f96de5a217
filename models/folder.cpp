#include "models/folder.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/ones.h>
#include <ATen/ops/zeros.h>

#include <optional>
#include <set>

#include "base/error.h"
#include "base/file.h"
#include "base/json.h"
#include "base/random.h"
#include "base/strings.h"
#include "models/safetensors.h"
#include "models/weight_names.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

using Kind = ExpectedWeight::Kind;

constexpr const char* kCopiedFiles[] = {
    "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "generation_config.json", "vocab.json",
    "merges.txt",     "tokenizer.model",       "added_tokens.json",       "chat_template.jinja"};

// FNV-1a: the same name gives the same number everywhere.
uint64_t number_of(const std::string& name) {
  uint64_t hash = 0xCBF29CE484222325u;
  for (const char c : name) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001B3u;
  return hash;
}

at::Tensor random_matrix(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed) {
  const at::Tensor result = at::empty(weight.shape, at::kFloat);
  RandomStream random(seed, number_of(weight.name));  // by name: another order or another layer count changes no tensor
  float* data = result.mutable_data_ptr<float>();
  for (int64_t i = 0; i < result.numel(); ++i) data[i] = static_cast<float>(config.initializer_range * random.normal());
  return result;
}

at::Tensor fresh_weight(const ExpectedWeight& weight, const ModelConfig& config, uint64_t seed) {
  switch (weight.kind) {
    case Kind::kNorm:
      return at::ones(weight.shape, at::kFloat);
    case Kind::kBias:
      return at::zeros(weight.shape, at::kFloat);
    // Zeros: every value is 0 at first, so that the first advantages are the plain returns and not the noise of a random
    // critic. The gradient of the head does not vanish there, so it learns from the first step on.
    case Kind::kValueHead:
      return at::zeros(weight.shape, at::kFloat);
    case Kind::kMatrix:
    case Kind::kHead:
      return random_matrix(weight, config, seed);
  }
  throw InternalError("unknown kind of weight");
}

void refuse_left_over(const TensorFolder& tensors, const std::vector<ExpectedWeight>& expected, const ModelConfig& config,
                      bool value_head) {
  std::set<std::string> known;
  for (const ExpectedWeight& weight : expected) known.insert(weight.name);
  for (const std::string& name : tensors.names()) {
    if (known.contains(name) || is_ignorable_weight(name, config, value_head)) continue;
    const std::string help = name == "score.weight" ? "it is a value head: load the model with head = \"value\"" : "";
    throw UserError(tensors.file_of(name) + ": tensor " + sluice::quoted(name) + " belongs to no weight of a " +
                        config.architecture + " with " + plural(config.layers, "layer"),
                    help);
  }
}

// A tied folder may hold the output embedding all the same; if it differs, the model is not tied.
void check_tied(const TensorFolder& tensors, const ModelConfig& config, const Weights& weights) {
  constexpr const char* kHead = "lm_head.weight";
  if (!config.tied_embeddings || !tensors.contains(kHead)) return;
  if (!tensors.read(kHead, weights.embedding.sizes()).equal(weights.embedding)) {
    throw UserError(tensors.file_of(kHead) +
                        ": lm_head.weight differs from model.embed_tokens.weight, but config.json says "
                        "tie_word_embeddings",
                    "set tie_word_embeddings to false in config.json");
  }
}

std::string architecture_for(std::string name, bool value_head) {
  const std::string language = "ForCausalLM", value = "ForSequenceClassification";
  const std::string &from = value_head ? language : value, &to = value_head ? value : language;
  if (name.ends_with(from)) name.replace(name.size() - from.size(), from.size(), to);
  return name;
}

// The source's config.json with what differs in the saved model.
std::string saved_config(const Transformer& model, const fs::path& source_folder) {
  Json config = read_json(source_folder / "config.json");
  const bool value_head = model.weights().value_head.defined();
  config["architectures"] = Json::array({architecture_for(model.config().architecture, value_head)});
  config[config.contains("dtype") ? "dtype" : "torch_dtype"] = "float32";
  if (value_head) {
    config["num_labels"] = 1;
    config["id2label"] = {{"0", "LABEL_0"}};
    config["label2id"] = {{"LABEL_0", 0}};
  }
  return config.dump(2) + "\n";
}

}  // namespace

Transformer load_folder(const fs::path& folder, const LoadOptions& options) {
  const ModelConfig config = read_config(folder);
  const bool value_head = options.head == Head::kValue;
  Weights weights;
  const auto expected = expected_weights(config, value_head, weights);
  std::optional<TensorFolder> tensors;
  if (!options.random_init) tensors.emplace(folder);
  for (const ExpectedWeight& weight : expected) {
    const bool fresh = !tensors || (weight.kind == Kind::kValueHead && !tensors->contains(weight.name));
    *weight.slot = fresh ? fresh_weight(weight, config, options.seed) : tensors->read(weight.name, weight.shape);
  }
  if (tensors) {
    refuse_left_over(*tensors, expected, config, value_head);
    check_tied(*tensors, config, weights);
  }
  if (config.tied_embeddings && !value_head) weights.head = weights.embedding;
  if (options.trainable) {
    for (const auto& [name, tensor] : weights.named()) tensor.set_requires_grad(true);
  }
  return Transformer(config, std::move(weights));
}

void save_folder(const Transformer& model, const fs::path& source_folder, const fs::path& target) {
  fs::path unfinished = target;
  unfinished += ".tmp";
  std::error_code error;
  fs::remove_all(unfinished, error);
  fs::create_directories(unfinished, error);
  if (error) throw UserError("cannot create " + unfinished.string() + ": " + error.message());
  write_file_atomically(unfinished / "config.json", saved_config(model, source_folder));
  for (const char* name : kCopiedFiles) {
    if (fs::exists(source_folder / name)) write_file_atomically(unfinished / name, read_file(source_folder / name));
  }
  write_safetensors(unfinished / "model.safetensors", model.weights().named());
  replace_path(unfinished, target);
}

}  // namespace sluice::models
