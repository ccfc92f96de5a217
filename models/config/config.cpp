#include "models/config/config.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "models/config/config_experts.h"
#include "models/config/config_families.h"
#include "models/config/config_file.h"
#include "models/config/config_keys.h"
#include "models/config/config_rope.h"
#include "models/config/config_windows.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostLayers = 4096;
constexpr double kMostParameters = 0x1p50;

constexpr std::pair<std::string_view, Activation> kActivations[] = {
    {"silu", Activation::kSilu},         {"swish", Activation::kSilu}, {"gelu_pytorch_tanh", Activation::kGeluTanh},
    {"gelu_new", Activation::kGeluTanh}, {"gelu", Activation::kGelu},
};

Activation read_activation(const ConfigObject& file, const Family& family) {
  const std::string name = file.text(family.keys.activation, family.defaults.activation);
  std::vector<std::string> known;
  for (const auto& [text, activation] : kActivations) {
    if (name == text) return activation;
    known.emplace_back(text);
  }
  file.fail(family.keys.activation, "is " + sluice::quoted(name) + ", which is not supported", "supported: " + join(known, ", "));
}

// Absent is the family's own number; a null is as many as query heads.
int64_t read_kv_heads(const ConfigObject& file, const Family& family, int64_t heads) {
  const char* key = family.keys.kv_heads;
  if (key == nullptr || file.is_null(key)) return heads;
  return file.length(key, family.defaults.kv_heads.value_or(heads));
}

int64_t read_head_dim(const ConfigObject& file, const Family& family, const ModelConfig& config) {
  const char* key = family.keys.head_dim;
  if (key != nullptr && file.find(key) != nullptr) return file.length(key);
  if (family.defaults.head_dim) return *family.defaults.head_dim;
  if (config.hidden_size % config.heads == 0) return config.hidden_size / config.heads;
  file.fail(family.keys.hidden_size, "(" + std::to_string(config.hidden_size) + ") must be a multiple of " + family.keys.heads +
                                         " (" + std::to_string(config.heads) + ")" +
                                         (key == nullptr ? "" : " where head_dim is not given"));
}

void read_sizes(const ConfigObject& file, const Family& family, ModelConfig& config) {
  const FamilyKeys& keys = family.keys;
  config.vocab_size = file.length("vocab_size");
  config.hidden_size = file.length(keys.hidden_size);
  if (family.experts) {
    config.experts = read_experts(file, *family.experts);
    const int64_t dense = family.experts->dense_size;
    config.intermediate_size = file.length(keys.intermediate_size, dense > 0 ? dense : config.experts.size);
  } else {
    // GPT-2 has four times the hidden size unless it says otherwise.
    const auto wide = family.gated_mlp ? std::nullopt : std::optional(4 * config.hidden_size);
    config.intermediate_size = file.length(keys.intermediate_size, wide);
  }
  config.layers = file.length(keys.layers);
  config.heads = file.length(keys.heads);
  config.kv_heads = read_kv_heads(file, family, config.heads);
  config.head_dim = read_head_dim(file, family, config);
  config.max_positions = file.length(keys.max_positions, family.defaults.max_positions);
}

void read_switches(const ConfigObject& file, const Family& family, ModelConfig& config) {
  const FamilyKeys& keys = family.keys;
  config.norm = family.norm;
  config.norm_place = family.norm_place;
  config.qk_norm = family.qk_norm;
  config.norm_eps = file.positive_real(keys.norm_eps, family.defaults.norm_eps);
  const bool attention_bias = keys.attention_bias != nullptr && file.flag(keys.attention_bias, false);
  const bool qkv_bias = family.qkv_bias || (keys.qkv_bias != nullptr && file.flag(keys.qkv_bias, true));
  config.qkv_bias = qkv_bias || attention_bias;
  config.attention_output_bias = family.output_and_mlp_bias || attention_bias;
  config.mlp_bias = family.output_and_mlp_bias || (keys.mlp_bias != nullptr && file.flag(keys.mlp_bias, false));
  config.activation = read_activation(file, family);
  config.gated_mlp = family.gated_mlp;
  config.learned_positions = family.learned_positions;
  config.tied_embeddings = file.flag("tie_word_embeddings", family.defaults.tied_embeddings);
  config.initializer_range = file.real("initializer_range", config.initializer_range);
  if (family.scaled_embedding) config.embedding_scale = std::sqrt(static_cast<double>(config.hidden_size));
}

// Of Gemma: absent is the family's own value, a null is no cap.
double read_softcap(const ConfigObject& file, const std::string& key, double fallback) {
  if (file.find(key) != nullptr) return file.positive_real(key);
  return file.is_null(key) ? 0 : fallback;
}

void read_scores(const ConfigObject& file, const Family& family, ModelConfig& config) {
  if (family.softcaps != Softcaps::kNone) {
    config.attention_scale = 1 / std::sqrt(file.positive_real("query_pre_attn_scalar", 256));
    config.logit_softcap = read_softcap(file, "final_logit_softcapping", family.defaults.logit_softcap);
    if (family.softcaps == Softcaps::kOfLogitsAndScores) {
      config.attention_softcap = read_softcap(file, "attn_logit_softcapping", family.defaults.attention_softcap);
    } else {
      file.refuse_unless("attn_logit_softcapping", nullptr);
    }
    file.refuse_unless("use_bidirectional_attention", false);
    file.find("hidden_act");  // published beside hidden_activation, and not read
  }
  if (family.learned_positions) {
    if (!file.flag("scale_attn_weights", true)) config.attention_scale = 1;
    file.refuse_unless("scale_attn_by_inverse_layer_idx", false);
    file.refuse_unless("reorder_and_upcast_attn", false);
  }
}

std::vector<int64_t> read_end_of_sequence(const ConfigObject& file) {
  constexpr const char* kKey = "eos_token_id";
  constexpr size_t kMost = 4096;
  const Json* value = file.find(kKey);
  if (value == nullptr) return {};
  std::vector<int64_t> ids;
  for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || ids.size() == kMost) {
      file.fail(kKey, "must be a token id or a list of them");
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

void check_end_of_sequence(const ConfigObject& file, const ModelConfig& config) {
  for (const int64_t id : config.end_of_sequence) {
    if (id < config.vocab_size) continue;
    file.fail("eos_token_id", std::to_string(id) + " is not below vocab_size (" + std::to_string(config.vocab_size) + ")",
              "the id of the token that ends a text in this model's tokenizer, or remove the key");
  }
}

// generation_config.json has the word where there is one; config.json often keeps the id of the model it was tuned from.
void read_end_of_sequence(const fs::path& folder, const ConfigObject& file, ModelConfig& config) {
  const fs::path path = folder / "generation_config.json";
  if (is_there(path)) {
    const Json json = read_config_json(path);
    const ConfigObject generation(path.string(), "", json);
    config.end_of_sequence = read_end_of_sequence(generation);
    check_end_of_sequence(generation, config);
  }
  const auto ids = read_end_of_sequence(file);
  if (!config.end_of_sequence.empty()) return;
  config.end_of_sequence = ids;
  check_end_of_sequence(file, config);
}

// A bound on the weights, so that no count of elements or bytes overflows.
void check_size(const ConfigObject& file, const ModelConfig& config) {
  const auto hidden = static_cast<double>(config.hidden_size);
  const auto mixtures = static_cast<double>(config.mixtures()), layers = static_cast<double>(config.layers);
  const double inner =
      mixtures * inner_size(config.experts) + (layers - mixtures) * static_cast<double>(config.intermediate_size);
  const double queries = static_cast<double>(config.heads) * static_cast<double>(config.head_dim);
  const double tables = hidden * (2 * static_cast<double>(config.vocab_size) + static_cast<double>(config.max_positions));
  if (queries > static_cast<double>(kLargestLength) || hidden * (4 * layers * queries + 3 * inner) + tables > kMostParameters) {
    file.fail("hidden_size", "and the other sizes together make a model that is too large for any machine");
  }
}

void check_consistent(const ConfigObject& file, const Family& family, const ModelConfig& config) {
  if (config.layers > kMostLayers) {
    file.fail(family.keys.layers,
              "is too large: " + std::to_string(config.layers) + "; at most " + std::to_string(kMostLayers) + " are supported");
  }
  if (config.heads % config.kv_heads != 0) {
    file.fail(family.keys.heads, "(" + std::to_string(config.heads) + ") must be a multiple of num_key_value_heads (" +
                                     std::to_string(config.kv_heads) + ")");
  }
}

}  // namespace

double ModelConfig::score_scale() const {
  return attention_scale == 0 ? 1.0 / std::sqrt(static_cast<double>(head_dim)) : attention_scale;
}

int64_t ModelConfig::idle_parameters() const {
  return mixtures() * (experts.count - experts.per_token) * 3 * experts.size * hidden_size;
}

int64_t ModelConfig::steady_positions() const {
  int64_t most = max_positions;
  for (int64_t which = 0; which < ropes(); ++which)
    if (rope_at(which).depends_on_length()) most = std::min(most, rope_at(which).original_positions);
  return most;
}

ModelConfig read_config(const fs::path& folder) { return read_config(folder, builtin_families()); }

ModelConfig read_config(const fs::path& folder, std::span<const Family> families) {
  const fs::path path = folder / "config.json";
  const Json json = read_config_json(path);
  const ConfigObject file(path.string(), "", json);
  const Family& family = read_family(file, families);
  ModelConfig config;
  config.model_type = family.model_type;
  config.family = &family;
  config.architecture = read_architecture(file, family);
  refuse_unsupported(file, config.model_type);
  read_sizes(file, family, config);
  read_switches(file, family, config);
  read_scores(file, family, config);
  if (!config.learned_positions) read_rope(file, family, config);
  read_end_of_sequence(folder, file, config);
  check_consistent(file, family, config);  // before anything takes memory by the number of layers
  if (family.experts) read_dense_layers(file, *family.experts, config);
  check_size(file, config);
  const std::vector<bool> rotary = read_rotary_layers(file, family, config.layers);
  const std::vector<bool> sliding = read_windows(file, family, rotary, config);
  config.rope_of_layer = ropes_of_layers(family, rotary, sliding);
  refuse_unknown_keys(file);
  return config;
}

}  // namespace sluice::models
