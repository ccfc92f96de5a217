#include "models/config/config_families.h"

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

constexpr FamilyKeys kWithAttentionBias{.attention_bias = "attention_bias"};
constexpr FamilyKeys kWithBothBiases{.attention_bias = "attention_bias", .mlp_bias = "mlp_bias"};
constexpr FamilyKeys kWithQkvBias{.qkv_bias = "qkv_bias"};
constexpr FamilyKeys kGemmaKeys{.activation = "hidden_activation", .attention_bias = "attention_bias"};
constexpr FamilyKeys kGemma3Keys{.activation = "hidden_activation",
                                 .attention_bias = "attention_bias",
                                 .window_pattern = "sliding_window_pattern",
                                 .window_rope_theta = "rope_local_base_freq"};
constexpr FamilyKeys kGlm4Keys{.qkv_bias = "attention_bias"};
constexpr FamilyKeys kGpt2Keys{.hidden_size = "n_embd",
                               .intermediate_size = "n_inner",
                               .layers = "n_layer",
                               .heads = "n_head",
                               .kv_heads = nullptr,
                               .head_dim = nullptr,
                               .max_positions = "n_positions",
                               .norm_eps = "layer_norm_epsilon",
                               .activation = "activation_function"};

constexpr Family kFamilies[] = {
    {.model_type = "llama",
     .language_class = "LlamaForCausalLM",
     .value_class = "LlamaForSequenceClassification",
     .defaults = {.max_positions = 2048},
     .keys = kWithBothBiases},
    {.model_type = "mistral",
     .language_class = "MistralForCausalLM",
     .value_class = "MistralForSequenceClassification",
     .defaults = {.max_positions = 131072, .kv_heads = 8},
     .windows = WindowRule::kAllLayers,
     .default_window = 4096},
    {.model_type = "qwen2",
     .language_class = "Qwen2ForCausalLM",
     .value_class = "Qwen2ForSequenceClassification",
     .defaults = {.max_positions = 32768, .kv_heads = 32},
     .windows = WindowRule::kUpperLayers,
     .default_window = 4096,
     .qkv_bias = true},
    {.model_type = "qwen3",
     .language_class = "Qwen3ForCausalLM",
     .value_class = "Qwen3ForSequenceClassification",
     .defaults = {.max_positions = 32768, .kv_heads = 32, .head_dim = 128},
     .keys = kWithAttentionBias,
     .qk_norm = QkNorm::kHead,
     .windows = WindowRule::kUpperLayers,
     .default_window = 4096},
    {.model_type = "phi3",
     .language_class = "Phi3ForCausalLM",
     .value_class = "Phi3ForSequenceClassification",
     .defaults = {.max_positions = 4096, .norm_eps = 1e-5},
     .windows = WindowRule::kAllLayers,
     .partial_rotary = true,
     .longrope_alone = true},
    {.model_type = "gpt2",
     .language_class = "GPT2LMHeadModel",
     .value_class = "GPT2ForSequenceClassification",
     .defaults = {.max_positions = 1024, .norm_eps = 1e-5, .activation = "gelu_new", .tied_embeddings = true},
     .keys = kGpt2Keys,
     .norm = NormKind::kLayer,
     .qkv_bias = true,
     .output_and_mlp_bias = true,
     .gated_mlp = false,
     .learned_positions = true},
    {.model_type = "gemma2",
     .language_class = "Gemma2ForCausalLM",
     .value_class = "Gemma2ForSequenceClassification",
     .defaults = {.max_positions = 8192,
                  .activation = "gelu_pytorch_tanh",
                  .tied_embeddings = true,
                  .kv_heads = 4,
                  .head_dim = 256,
                  .attention_softcap = 50,
                  .logit_softcap = 30},
     .keys = kGemmaKeys,
     .norm = NormKind::kRmsFromOne,
     .norm_place = NormPlace::kBoth,
     .windows = WindowRule::kAllButEvery,
     .default_window = 4096,
     .window_pattern = 2,
     .scaled_embedding = true,
     .softcaps = Softcaps::kOfLogitsAndScores},
    {.model_type = "gemma3_text",
     .language_class = "Gemma3ForCausalLM",
     .value_class = "Gemma3TextForSequenceClassification",
     .defaults = {.max_positions = 131072,
                  .activation = "gelu_pytorch_tanh",
                  .tied_embeddings = true,
                  .kv_heads = 4,
                  .head_dim = 256,
                  .rope_theta = 1e6,
                  .window_rope_theta = 1e4},
     .keys = kGemma3Keys,
     .norm = NormKind::kRmsFromOne,
     .norm_place = NormPlace::kBoth,
     .qk_norm = QkNorm::kHead,
     .windows = WindowRule::kAllButEvery,
     .default_window = 4096,
     .window_pattern = 6,
     .ropes_by_window = true,
     .scaled_embedding = true,
     .softcaps = Softcaps::kOfLogits},
    {.model_type = "olmo2",
     .language_class = "Olmo2ForCausalLM",
     .value_class = "Olmo2ForSequenceClassification",
     .defaults = {.max_positions = 2048, .norm_eps = 1e-5},
     .keys = kWithAttentionBias,
     .norm_place = NormPlace::kAfter,
     .qk_norm = QkNorm::kProjection},
    {.model_type = "olmo3",
     .language_class = "Olmo3ForCausalLM",
     .value_class = "Olmo3ForSequenceClassification",
     .defaults = {.max_positions = 2048, .norm_eps = 1e-5, .rope_theta = 5e5},
     .keys = kWithAttentionBias,
     .norm_place = NormPlace::kAfter,
     .qk_norm = QkNorm::kProjection,
     .windows = WindowRule::kAllButEvery,
     .default_window = 4096,
     .window_pattern = 4,
     .ropes_by_window = true,
     .weights_like = "olmo2"},
    {.model_type = "smollm3",
     .language_class = "SmolLM3ForCausalLM",
     .value_class = "SmolLM3ForSequenceClassification",
     .defaults = {.max_positions = 32768, .tied_embeddings = true, .kv_heads = 4, .rope_theta = 2e6},
     .keys = kWithBothBiases,
     .windows = WindowRule::kWithoutRotary,
     .plain_every = 4,
     .weights_like = "llama"},
    {.model_type = "glm4",
     .language_class = "Glm4ForCausalLM",
     .value_class = "Glm4ForSequenceClassification",
     .defaults = {.max_positions = 131072, .norm_eps = 1.5625e-7, .kv_heads = 2, .head_dim = 128, .rotary_share = 0.5},
     .keys = kGlm4Keys,
     .norm_place = NormPlace::kBoth,
     .partial_rotary = true,
     .rotary_neighbours = true},
    {.model_type = "qwen2_moe",
     .language_class = "Qwen2MoeForCausalLM",
     .value_class = "Qwen2MoeForSequenceClassification",
     .defaults = {.max_positions = 32768, .kv_heads = 16},
     .keys = kWithQkvBias,
     .experts =
         FamilyExperts{.count = 60, .per_token = 4, .size = 1408, .shared_size = 5632, .dense_size = 5632, .dense_adapts = true},
     .weights_like = "qwen2"},
    {.model_type = "qwen3_moe",
     .language_class = "Qwen3MoeForCausalLM",
     .value_class = "Qwen3MoeForSequenceClassification",
     .defaults = {.max_positions = 32768, .kv_heads = 4},
     .keys = kWithAttentionBias,
     .qk_norm = QkNorm::kHead,
     .experts = FamilyExperts{.count = 128, .per_token = 8, .size = 768, .dense_size = 6144},
     .weights_like = "qwen3"},
    {.model_type = "mixtral",
     .language_class = "MixtralForCausalLM",
     .value_class = "MixtralForSequenceClassification",
     .defaults = {.max_positions = 131072, .norm_eps = 1e-5, .kv_heads = 8, .rope_theta = 1e6},
     .windows = WindowRule::kAllLayers,
     .experts =
         FamilyExperts{.size_key = "intermediate_size", .count = 8, .per_token = 2, .size = 14336, .always_normalised = true}},
};

// Families that people have folders of, and what of them is not there.
struct UnsupportedFamily {
  const char* model_type;
  const char* reason;
};

constexpr UnsupportedFamily kUnsupported[] = {
    {"gemma3", "it reads images; the folders of its text models have \"gemma3_text\""},
    {"llama4", "it reads images, and its layers are those of \"llama4_text\""},
    {"llama4_text",
     "its attention is in chunks and scaled by the position, its queries and keys have norms without weights, and a sigmoid "
     "weighs what its experts read"},
};

std::string reason_against(const std::string& type) {
  for (const UnsupportedFamily& family : kUnsupported)
    if (type == family.model_type) return std::string(": ") + family.reason;
  return {};
}

}  // namespace

std::span<const Family> builtin_families() { return kFamilies; }

const Family& read_family(const ConfigObject& file, std::span<const Family> families) {
  const std::string type = file.text("model_type", "");
  std::vector<std::string> known;
  for (const Family& family : families) {
    if (type == family.model_type) return family;
    known.push_back(family.model_type);
  }
  if (type.empty()) file.fail("model_type", "is missing", "one of: " + join(known, ", "));
  file.fail("model_type", sluice::quoted(type) + " is not supported" + reason_against(type), "supported: " + join(known, ", "));
}

std::string read_architecture(const ConfigObject& file, const Family& family) {
  const std::vector<std::string> known{family.language_class, family.value_class};
  if (file.find("architectures") == nullptr) return known.front();
  const std::string name = file.texts("architectures", 1).front();
  if (name != known[0] && name != known[1]) {
    file.fail("architectures", sluice::quoted(name) + " is not supported with model_type " + sluice::quoted(family.model_type),
              "supported: " + join(known, ", "));
  }
  return name;
}

}  // namespace sluice::models
