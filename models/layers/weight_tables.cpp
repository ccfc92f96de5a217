#include "models/layers/weight_tables.h"

#include <algorithm>

#include "base/error.h"
#include "models/config/config_families.h"

namespace sluice::models {
namespace {

using Kind = ExpectedWeight::Kind;
using L = LayerWeights;
using enum Dim;

constexpr WeightRow norm(Dim size) { return {.outputs = size, .kind = Kind::kNorm}; }
constexpr WeightRow norm_bias() { return {.outputs = kHidden, .kind = Kind::kBias}; }
constexpr WeightRow matrix(Dim outputs, Dim inputs) { return {.outputs = outputs, .inputs = inputs}; }
constexpr WeightRow bias(Dim size, When when) { return {.outputs = size, .kind = Kind::kBias, .when = when}; }

constexpr WeightRow part(const char* name, WeightRow row) {
  row.part = name;
  return row;
}

constexpr WeightRow transposed(WeightRow row) {
  row.transposed = true;
  return row;
}

constexpr WeightRow kHeadRow{.outputs = kVocab, .inputs = kHidden, .kind = Kind::kHead, .when = When::kUntiedHead};
constexpr WeightRow kValueHeadRow{.outputs = kOne, .inputs = kHidden, .kind = Kind::kValueHead, .when = When::kValueHead};

// What Llama, Mistral and Qwen2 have; the others differ in one part or two.
constexpr ModelRow kBefore[] = {{"model.embed_tokens.weight", &Weights::embedding, matrix(kVocab, kHidden)}};
constexpr ModelRow kAfter[] = {
    {"model.norm.weight", &Weights::final_norm, norm(kHidden)},
    {"lm_head.weight", &Weights::head, kHeadRow},
    {"score.weight", &Weights::value_head, kValueHeadRow},
};
constexpr LayerRow kAttentionNorm[] = {{"input_layernorm.weight", &L::attention_norm, norm(kHidden)}};
constexpr LayerRow kAttention[] = {
    {"self_attn.q_proj.weight", &L::query, matrix(kQuery, kHidden)},
    {"self_attn.k_proj.weight", &L::key, matrix(kKey, kHidden)},
    {"self_attn.v_proj.weight", &L::value, matrix(kKey, kHidden)},
    {"self_attn.q_proj.bias", &L::query, bias(kQuery, When::kQkvBias)},
    {"self_attn.k_proj.bias", &L::key, bias(kKey, When::kQkvBias)},
    {"self_attn.v_proj.bias", &L::value, bias(kKey, When::kQkvBias)},
    {"self_attn.o_proj.weight", &L::attention_output, matrix(kHidden, kQuery)},
    {"self_attn.o_proj.bias", &L::attention_output, bias(kHidden, When::kAttentionOutputBias)},
};
constexpr LayerRow kFeedForwardNorm[] = {{"post_attention_layernorm.weight", &L::feed_forward_norm, norm(kHidden)}};
constexpr std::string_view kBuffers[] = {"rotary_emb.inv_freq"};

constexpr LayerRow kQwen3Norms[] = {
    {"input_layernorm.weight", &L::attention_norm, norm(kHidden)},
    {"self_attn.q_norm.weight", &L::query_norm, norm(kHead)},
    {"self_attn.k_norm.weight", &L::key_norm, norm(kHead)},
};

constexpr LayerRow kPhi3Attention[] = {
    {"self_attn.qkv_proj.weight", &L::query, part("query", matrix(kQuery, kHidden))},
    {"self_attn.qkv_proj.weight", &L::key, part("key", matrix(kKey, kHidden))},
    {"self_attn.qkv_proj.weight", &L::value, part("value", matrix(kKey, kHidden))},
    {"self_attn.o_proj.weight", &L::attention_output, matrix(kHidden, kQuery)},
};

constexpr LayerRow kGemma2AttentionNorms[] = {
    {"input_layernorm.weight", &L::attention_norm, norm(kHidden)},
    {"post_attention_layernorm.weight", &L::attention_output_norm, norm(kHidden)},
};
constexpr LayerRow kGemma2FeedForwardNorms[] = {
    {"pre_feedforward_layernorm.weight", &L::feed_forward_norm, norm(kHidden)},
    {"post_feedforward_layernorm.weight", &L::feed_forward_output_norm, norm(kHidden)},
};

constexpr LayerRow kGemma3AttentionNorms[] = {
    {"input_layernorm.weight", &L::attention_norm, norm(kHidden)},
    {"self_attn.q_norm.weight", &L::query_norm, norm(kHead)},
    {"self_attn.k_norm.weight", &L::key_norm, norm(kHead)},
    {"post_attention_layernorm.weight", &L::attention_output_norm, norm(kHidden)},
};

constexpr LayerRow kGlm4AttentionNorms[] = {
    {"input_layernorm.weight", &L::attention_norm, norm(kHidden)},
    {"post_self_attn_layernorm.weight", &L::attention_output_norm, norm(kHidden)},
};
constexpr LayerRow kGlm4FeedForwardNorms[] = {
    {"post_attention_layernorm.weight", &L::feed_forward_norm, norm(kHidden)},
    {"post_mlp_layernorm.weight", &L::feed_forward_output_norm, norm(kHidden)},
};

constexpr LayerRow kOlmo2AttentionNorms[] = {
    {"self_attn.q_norm.weight", &L::query_norm, norm(kQuery)},
    {"self_attn.k_norm.weight", &L::key_norm, norm(kKey)},
    {"post_attention_layernorm.weight", &L::attention_output_norm, norm(kHidden)},
};
constexpr LayerRow kOlmo2FeedForwardNorm[] = {{"post_feedforward_layernorm.weight", &L::feed_forward_output_norm, norm(kHidden)}};

constexpr ModelRow kGpt2Before[] = {
    {"transformer.wte.weight", &Weights::embedding, matrix(kVocab, kHidden)},
    {"transformer.wpe.weight", &Weights::positions, matrix(kPositions, kHidden)},
};
constexpr LayerRow kGpt2Attention[] = {
    {"ln_1.weight", &L::attention_norm, norm(kHidden)},
    {"ln_1.bias", &L::attention_norm_bias, norm_bias()},
    {"attn.c_attn.weight", &L::query, transposed(part("query", matrix(kQuery, kHidden)))},
    {"attn.c_attn.weight", &L::key, transposed(part("key", matrix(kKey, kHidden)))},
    {"attn.c_attn.weight", &L::value, transposed(part("value", matrix(kKey, kHidden)))},
    {"attn.c_attn.bias", &L::query, part("query", bias(kQuery, When::kQkvBias))},
    {"attn.c_attn.bias", &L::key, part("key", bias(kKey, When::kQkvBias))},
    {"attn.c_attn.bias", &L::value, part("value", bias(kKey, When::kQkvBias))},
    {"attn.c_proj.weight", &L::attention_output, transposed(matrix(kHidden, kQuery))},
    {"attn.c_proj.bias", &L::attention_output, bias(kHidden, When::kAttentionOutputBias)},
};
constexpr LayerRow kGpt2FeedForwardNorm[] = {
    {"ln_2.weight", &L::feed_forward_norm, norm(kHidden)},
    {"ln_2.bias", &L::feed_forward_norm_bias, norm_bias()},
};
constexpr ModelRow kGpt2After[] = {
    {"transformer.ln_f.weight", &Weights::final_norm, norm(kHidden)},
    {"transformer.ln_f.bias", &Weights::final_norm_bias, norm_bias()},
    {"lm_head.weight", &Weights::head, kHeadRow},
    {"score.weight", &Weights::value_head, kValueHeadRow},
};
constexpr std::string_view kGpt2Buffers[] = {".attn.bias", ".attn.masked_bias"};  // the causal mask

// A model of no family, put together by hand: every field under its own name. No file holds one, so that shapes do not matter.
constexpr WeightRow kAny{.outputs = kHidden}, kAnyBias{.outputs = kHidden, .kind = Kind::kBias};
constexpr ModelRow kFieldsBefore[] = {{"embedding", &Weights::embedding, kAny}, {"positions", &Weights::positions, kAny}};
constexpr LayerRow kAttentionFields[] = {
    {"attention_norm", &L::attention_norm, kAny},
    {"attention_norm_bias", &L::attention_norm_bias, kAny},
    {"query", &L::query, kAny},
    {"key", &L::key, kAny},
    {"value", &L::value, kAny},
    {"query_bias", &L::query, kAnyBias},
    {"key_bias", &L::key, kAnyBias},
    {"value_bias", &L::value, kAnyBias},
    {"query_norm", &L::query_norm, kAny},
    {"key_norm", &L::key_norm, kAny},
    {"attention_output", &L::attention_output, kAny},
    {"attention_output_bias", &L::attention_output, kAnyBias},
    {"attention_output_norm", &L::attention_output_norm, kAny},
};
constexpr LayerRow kNormFields[] = {
    {"feed_forward_norm", &L::feed_forward_norm, kAny},
    {"feed_forward_norm_bias", &L::feed_forward_norm_bias, kAny},
    {"feed_forward_output_norm", &L::feed_forward_output_norm, kAny},
};
constexpr ModelRow kFieldsAfter[] = {
    {"final_norm", &Weights::final_norm, kAny},
    {"final_norm_bias", &Weights::final_norm_bias, kAny},
    {"head", &Weights::head, kAny},
    {"value_head", &Weights::value_head, kAny},
};

using LayerParts = std::array<std::span<const LayerRow>, 3>;

constexpr WeightTable llama_like(const char* family, LayerParts layer) {
  return {family, "model.", "model.layers.", kBefore, layer, kAfter, kBuffers};
}

constexpr LayerParts kLlamaLayer{kAttentionNorm, kAttention, kFeedForwardNorm};

constexpr WeightTable kTables[] = {
    llama_like("llama", kLlamaLayer),
    llama_like("mistral", kLlamaLayer),
    llama_like("mixtral", kLlamaLayer),
    llama_like("qwen2", kLlamaLayer),
    llama_like("qwen3", {kQwen3Norms, kAttention, kFeedForwardNorm}),
    llama_like("phi3", {kAttentionNorm, kPhi3Attention, kFeedForwardNorm}),
    llama_like("gemma2", {kGemma2AttentionNorms, kAttention, kGemma2FeedForwardNorms}),
    llama_like("gemma3_text", {kGemma3AttentionNorms, kAttention, kGemma2FeedForwardNorms}),
    llama_like("glm4", {kGlm4AttentionNorms, kAttention, kGlm4FeedForwardNorms}),
    llama_like("olmo2", {kOlmo2AttentionNorms, kAttention, kOlmo2FeedForwardNorm}),
    {"gpt2", "transformer.", "transformer.h.", kGpt2Before, {kGpt2Attention, kGpt2FeedForwardNorm}, kGpt2After, kGpt2Buffers},
    {"", "", "layers.", kFieldsBefore, {kAttentionFields, kNormFields}, kFieldsAfter, {}},
};

}  // namespace

std::string_view weight_names_of(const ModelConfig& config) {
  if (config.family != nullptr && config.family->weights_like != nullptr) return config.family->weights_like;
  return config.model_type;
}

const WeightTable& weight_table(std::string_view family) {
  const auto* table = std::find_if(std::begin(kTables), std::end(kTables), [&](const auto& t) { return family == t.family; });
  SLUICE_CHECK(table != std::end(kTables), "no names for the weights of a " + std::string(family));
  return *table;
}

}  // namespace sluice::models
