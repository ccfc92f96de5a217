#include "models/weight_names.h"

#include <string_view>

#include "base/error.h"

namespace sluice::models {
namespace {

using Kind = ExpectedWeight::Kind;

enum class Dim { kVocab, kHidden, kQuery, kKey, kIntermediate, kOne };  // kQuery, kKey: all heads together

struct Row {
  std::vector<Dim> dims;
  Kind kind;
};

// The table: our field <-> Hugging Face name, shape and kind, in the order of Weights::named(). `W` is Weights or const Weights.
template <class W, class Visit>
void visit_weights(W& weights, const Visit& visit) {
  using enum Dim;
  visit("model.embed_tokens.weight", weights.embedding, Row{{kVocab, kHidden}, Kind::kMatrix});
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    auto& layer = weights.layers[i];
    const std::string at = "model.layers." + std::to_string(i) + ".";
    visit(at + "input_layernorm.weight", layer.attention_norm, Row{{kHidden}, Kind::kNorm});
    visit(at + "self_attn.q_proj.weight", layer.query, Row{{kQuery, kHidden}, Kind::kMatrix});
    visit(at + "self_attn.k_proj.weight", layer.key, Row{{kKey, kHidden}, Kind::kMatrix});
    visit(at + "self_attn.v_proj.weight", layer.value, Row{{kKey, kHidden}, Kind::kMatrix});
    visit(at + "self_attn.q_proj.bias", layer.query_bias, Row{{kQuery}, Kind::kBias});
    visit(at + "self_attn.k_proj.bias", layer.key_bias, Row{{kKey}, Kind::kBias});
    visit(at + "self_attn.v_proj.bias", layer.value_bias, Row{{kKey}, Kind::kBias});
    visit(at + "self_attn.o_proj.weight", layer.attention_output, Row{{kHidden, kQuery}, Kind::kMatrix});
    visit(at + "post_attention_layernorm.weight", layer.mlp_norm, Row{{kHidden}, Kind::kNorm});
    visit(at + "mlp.gate_proj.weight", layer.gate, Row{{kIntermediate, kHidden}, Kind::kMatrix});
    visit(at + "mlp.up_proj.weight", layer.up, Row{{kIntermediate, kHidden}, Kind::kMatrix});
    visit(at + "mlp.down_proj.weight", layer.down, Row{{kHidden, kIntermediate}, Kind::kMatrix});
  }
  visit("model.norm.weight", weights.final_norm, Row{{kHidden}, Kind::kNorm});
  visit("lm_head.weight", weights.head, Row{{kVocab, kHidden}, Kind::kHead});
  visit("score.weight", weights.value_head, Row{{kOne, kHidden}, Kind::kValueHead});
}

int64_t size_of(Dim dim, const ModelConfig& config) {
  switch (dim) {
    case Dim::kVocab:
      return config.vocab_size;
    case Dim::kHidden:
      return config.hidden_size;
    case Dim::kQuery:
      return config.heads * config.head_dim;
    case Dim::kKey:
      return config.kv_heads * config.head_dim;
    case Dim::kIntermediate:
      return config.intermediate_size;
    case Dim::kOne:
      return 1;
  }
  throw InternalError("unknown dimension");
}

bool is_present(Kind kind, const ModelConfig& config, bool value_head) {
  if (kind == Kind::kBias) return config.qkv_bias;
  if (kind == Kind::kHead) return !value_head && !config.tied_embeddings;
  return kind != Kind::kValueHead || value_head;
}

}  // namespace

std::vector<std::pair<std::string, at::Tensor*>> weight_slots(Weights& weights) {
  std::vector<std::pair<std::string, at::Tensor*>> slots;
  visit_weights(weights, [&](std::string name, at::Tensor& tensor, const Row&) { slots.emplace_back(std::move(name), &tensor); });
  return slots;
}

std::vector<std::pair<std::string, const at::Tensor*>> weight_slots(const Weights& weights) {
  std::vector<std::pair<std::string, const at::Tensor*>> slots;
  visit_weights(weights,
                [&](std::string name, const at::Tensor& tensor, const Row&) { slots.emplace_back(std::move(name), &tensor); });
  return slots;
}

std::vector<ExpectedWeight> expected_weights(const ModelConfig& config, bool value_head, Weights& weights) {
  weights.layers.resize(static_cast<size_t>(config.layers));
  std::vector<ExpectedWeight> expected;
  visit_weights(weights, [&](std::string name, at::Tensor& tensor, const Row& row) {
    if (!is_present(row.kind, config, value_head)) return;
    std::vector<int64_t> shape;
    for (const Dim dim : row.dims) shape.push_back(size_of(dim, config));
    expected.push_back({std::move(name), &tensor, std::move(shape), row.kind});
  });
  return expected;
}

bool is_ignorable_weight(const std::string& name, const ModelConfig& config, bool value_head) {
  const bool unused_head = name == "lm_head.weight" && (config.tied_embeddings || value_head);
  return unused_head || std::string_view(name).ends_with("rotary_emb.inv_freq");
}

}  // namespace sluice::models
