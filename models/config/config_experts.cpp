#include "models/config/config_experts.h"

#include <algorithm>
#include <set>
#include <string>

namespace sluice::models {
namespace {

constexpr int64_t kMostExperts = 4096;

// transformers 5 writes num_experts of a Qwen3-MoE as num_local_experts.
int64_t read_count(const ConfigObject& file, int64_t fallback) {
  const bool local = file.find("num_local_experts") != nullptr, both = local && file.find("num_experts") != nullptr;
  const int64_t count = file.length(local ? "num_local_experts" : "num_experts", fallback);
  if (both && file.length("num_experts") != count) file.fail("num_experts", "differs from num_local_experts");
  if (count <= kMostExperts) return count;
  file.fail(local ? "num_local_experts" : "num_experts",
            "is too large: " + std::to_string(count) + "; at most " + std::to_string(kMostExperts) + " are supported");
}

int64_t read_per_token(const ConfigObject& file, int64_t fallback, int64_t count) {
  const int64_t per_token = file.length("num_experts_per_tok", fallback);
  if (per_token <= count) return per_token;
  file.fail("num_experts_per_tok",
            "(" + std::to_string(per_token) + ") is more than there are experts (" + std::to_string(count) + ")");
}

// Windows, and what makes training differ from sampling.
void refuse_what_differs(const ConfigObject& file) {
  file.refuse_unless("router_jitter_noise", 0.0);
  file.refuse_unless("use_sliding_window", false);
  for (const char* key : {"sliding_window", "max_window_layers"}) file.find(key);  // switched off, or a window of all layers
}

// A loss of the router and its results, which nobody here asks for.
void pass_over_loss(const ConfigObject& file) {
  file.real("router_aux_loss_coef", 0);
  file.flag("output_router_logits", false);
}

std::set<int64_t> read_layers(const ConfigObject& file, const std::string& key) {
  std::set<int64_t> layers;
  const Json* const list = file.find(key);
  if (list == nullptr) return layers;
  const bool numbers =
      list->is_array() && std::ranges::all_of(*list, [](const Json& layer) { return layer.is_number_integer(); });
  if (!numbers) file.fail(key, "must be a list of the numbers of layers");
  for (const Json& layer : *list) layers.insert(layer.get<int64_t>());
  return layers;
}

}  // namespace

ExpertsConfig read_experts(const ConfigObject& file, const FamilyExperts& family) {
  refuse_what_differs(file);
  pass_over_loss(file);
  ExpertsConfig experts;
  experts.count = read_count(file, family.count);
  experts.per_token = read_per_token(file, family.per_token, experts.count);
  experts.size = file.length(family.size_key, family.size);
  if (family.shared_size > 0) experts.shared_size = file.length("shared_expert_intermediate_size", family.shared_size);
  experts.normalised = family.always_normalised || file.flag("norm_topk_prob", false);
  return experts;
}

void read_dense_layers(const ConfigObject& file, const FamilyExperts& family, ModelConfig& config) {
  if (family.dense_size == 0) {
    file.refuse_unless("mlp_only_layers", Json::array());
    file.refuse_unless("decoder_sparse_step", 1);
    return;
  }
  const std::set<int64_t> named = read_layers(file, "mlp_only_layers");
  const int64_t step = file.length("decoder_sparse_step", 1);
  for (int64_t layer = 0; layer < config.layers; ++layer)
    if (named.contains(layer) || (layer + 1) % step != 0) config.experts.dense_layers.push_back(layer);
  if (config.mixtures() == 0) config.experts = {};
}

double inner_size(const ExpertsConfig& experts) {
  return static_cast<double>(experts.count) * static_cast<double>(experts.size) + static_cast<double>(experts.shared_size);
}

}  // namespace sluice::models
