#include <algorithm>
#include <array>
#include <span>

#include "models/config/config_families.h"
#include "models/layers/feed_forward/mlp.h"
#include "models/layers/weight_tables.h"

namespace sluice::models {
namespace {

struct MlpRow {
  const char* name;
  Mlp::Linear linear;
  bool bias = false;
  const char* part = "";  // of a tensor that several share
  bool transposed = false;
};

constexpr MlpRow kGated[] = {
    {"mlp.gate_proj.weight", Mlp::kGate},     {"mlp.up_proj.weight", Mlp::kUp},     {"mlp.down_proj.weight", Mlp::kDown},
    {"mlp.gate_proj.bias", Mlp::kGate, true}, {"mlp.up_proj.bias", Mlp::kUp, true}, {"mlp.down_proj.bias", Mlp::kDown, true},
};
constexpr MlpRow kFusedGate[] = {
    {"mlp.gate_up_proj.weight", Mlp::kGate, false, "gate"},
    {"mlp.gate_up_proj.weight", Mlp::kUp, false, "up"},
    {"mlp.down_proj.weight", Mlp::kDown},
};
constexpr MlpRow kGpt2[] = {
    {"mlp.c_fc.weight", Mlp::kUp, false, "", true},
    {"mlp.c_fc.bias", Mlp::kUp, true},
    {"mlp.c_proj.weight", Mlp::kDown, false, "", true},
    {"mlp.c_proj.bias", Mlp::kDown, true},
};
// A model of no family, put together by hand.
constexpr MlpRow kFields[] = {
    {"gate", Mlp::kGate},        {"up", Mlp::kUp},
    {"down", Mlp::kDown},        {"gate_bias", Mlp::kGate, true},
    {"up_bias", Mlp::kUp, true}, {"down_bias", Mlp::kDown, true},
};

// Most families name theirs as Llama does.
std::span<const MlpRow> rows_of(std::string_view weight_names) {
  if (weight_names == "phi3" || weight_names == "glm4") return kFusedGate;
  if (weight_names == "gpt2") return kGpt2;
  if (weight_names.empty()) return kFields;
  return kGated;
}

// PEFT looks for linear layers by their names, which in a family of mixtures it may take for those of experts.
bool may_adapt(const ModelConfig& config) {
  if (config.family == nullptr || !config.family->experts) return true;
  return config.family->experts->dense_adapts;
}

std::vector<int64_t> shape_of(const NetworkTensor& tensor, const ModelConfig& config) {
  const int64_t outputs = tensor.linear == Mlp::kDown ? config.hidden_size : config.intermediate_size;
  if (tensor.bias) return {outputs};
  return {outputs, tensor.linear == Mlp::kDown ? config.intermediate_size : config.hidden_size};
}

}  // namespace

std::vector<NetworkTensor> mlp_names(std::string_view weight_names) {
  std::vector<NetworkTensor> tensors;
  for (const MlpRow& row : rows_of(weight_names)) {
    tensors.push_back(
        {.name = row.name, .linear = row.linear, .bias = row.bias, .shape = {}, .part = row.part, .transposed = row.transposed});
  }
  return tensors;
}

std::vector<NetworkTensor> Mlp::tensors(const ModelConfig& config) const {
  std::vector<NetworkTensor> tensors = mlp_names(weight_names_of(config));
  std::erase_if(tensors, [&](const NetworkTensor& tensor) {
    return (tensor.bias && !config.mlp_bias) || (tensor.linear == kGate && !config.gated_mlp);
  });
  for (NetworkTensor& tensor : tensors) {
    tensor.shape = shape_of(tensor, config);
    tensor.adapts = may_adapt(config);
  }
  return tensors;
}

std::vector<std::vector<size_t>> Mlp::stacks(size_t) const { return {{kGate, kUp}, {kDown}}; }

}  // namespace sluice::models
