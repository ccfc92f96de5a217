#include <string>

#include "models/layers/feed_forward/experts.h"
#include "models/layers/weight_tables.h"

namespace sluice::models {
namespace {

// How the files of a family call the parts of a mixture; of an expert what is around its number.
struct ExpertNames {
  const char *router, *expert, *gate, *up, *down;
  const char *shared, *shared_gate;
};

constexpr ExpertNames kQwenExperts{"mlp.gate.weight",
                                   "mlp.experts.",
                                   ".gate_proj.weight",
                                   ".up_proj.weight",
                                   ".down_proj.weight",
                                   "mlp.shared_expert",
                                   "mlp.shared_expert_gate.weight"};
constexpr ExpertNames kMixtralExperts{
    "block_sparse_moe.gate.weight", "block_sparse_moe.experts.", ".w1.weight", ".w3.weight", ".w2.weight", "", ""};
// A model of no family, put together by hand.
constexpr ExpertNames kExpertFields{"router", "experts.", ".gate", ".up", ".down", "shared", "shared_gate"};

const ExpertNames& names_of(std::string_view weight_names) {
  if (weight_names.empty()) return kExpertFields;
  return weight_names == "mixtral" ? kMixtralExperts : kQwenExperts;
}

NetworkTensor tensor_of(std::string name, size_t linear, int64_t outputs, int64_t inputs) {
  return {.name = std::move(name), .linear = linear, .shape = {outputs, inputs}, .part = {}, .adapts = false, .quantises = false};
}

// The three matrices of an expert.
void add_expert(const ExpertNames& names, const std::string& expert, size_t number, int64_t hidden, int64_t size, bool adapts,
                std::vector<NetworkTensor>& to) {
  const auto add = [&](const char* name, Mlp::Linear linear, int64_t outputs, int64_t inputs) {
    to.push_back(tensor_of(expert + name, Experts::linear_of(number, linear), outputs, inputs));
    to.back().adapts = adapts;
    to.back().quantises = true;
  };
  add(names.gate, Mlp::kGate, size, hidden);
  add(names.up, Mlp::kUp, size, hidden);
  add(names.down, Mlp::kDown, hidden, size);
}

}  // namespace

// What adapters of PEFT change are linear layers. transformers has a router and experts as plain tensors.
std::vector<NetworkTensor> Experts::tensors(const ModelConfig& config) const {
  const ExpertNames& names = names_of(weight_names_of(config));
  const ExpertsConfig& experts = config.experts;
  const auto count = static_cast<size_t>(experts.count);
  std::vector<NetworkTensor> all{tensor_of(names.router, kRouter, experts.count, config.hidden_size)};
  for (size_t e = 0; e < count; ++e)
    add_expert(names, names.expert + std::to_string(e), e, config.hidden_size, experts.size, false, all);
  if (experts.shared_size == 0) return all;
  add_expert(names, names.shared, count, config.hidden_size, experts.shared_size, true, all);
  all.push_back(tensor_of(names.shared_gate, linear_of(count + 1, Mlp::kGate), 1, config.hidden_size));
  return all;
}

std::vector<std::vector<size_t>> Experts::stacks(size_t linears) const {
  std::vector<std::vector<size_t>> stacks{{kRouter}};
  size_t next = 1;
  for (; next + Mlp::kLinears <= linears; next += Mlp::kLinears) {
    stacks.push_back({next + Mlp::kGate, next + Mlp::kUp});
    stacks.push_back({next + Mlp::kDown});
  }
  if (next < linears) stacks.push_back({next});  // the gate of the shared expert
  return stacks;
}

}  // namespace sluice::models
