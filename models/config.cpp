#include "models/config.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/json.h"
#include "base/strings.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

// Far above any model, low enough that nothing computed from a damaged file overflows or fills the memory.
constexpr int64_t kLargest = int64_t{1} << 24;
constexpr int64_t kMostLayers = 4096;

// config.json with typed look-ups whose errors name the file and the key. A null counts as absent.
class ConfigFile {
 public:
  explicit ConfigFile(const fs::path& path) : name_(path.string()), json_(read_json(path)) {
    if (!json_.is_object()) throw UserError(name_ + ": a JSON object was expected");
  }

  const Json* find(const std::string& key) const { return find_in(json_, key); }

  static const Json* find_in(const Json& object, const std::string& key) {
    const auto found = object.find(key);
    return found == object.end() || found->is_null() ? nullptr : &*found;
  }

  int64_t length(const std::string& key, std::optional<int64_t> fallback = {}) const {
    const Json* value = find(key);
    if (value == nullptr && fallback) return *fallback;
    if (value == nullptr) fail(key, "is missing");
    if (!value->is_number_integer()) fail(key, "must be an integer, not " + value->dump());
    if (value->is_number_unsigned() && value->get<uint64_t>() > kLargest) {
      fail(key, "is too large: " + value->dump() + "; at most " + std::to_string(kLargest) + " is supported");
    }
    const auto number = value->get<int64_t>();
    if (number < 1) fail(key, "must be positive, not " + value->dump());
    return number;
  }

  double real(const Json& object, const std::string& key, double fallback) const {
    const Json* value = find_in(object, key);
    if (value == nullptr) return fallback;
    if (!value->is_number()) fail(key, "must be a number, not " + value->dump());
    const double number = value->get<double>();
    if (!std::isfinite(number) || number < 0) fail(key, "must be finite and not negative, not " + value->dump());
    return number;
  }

  double positive_real(const Json& object, const std::string& key, double fallback) const {
    const double number = real(object, key, fallback);
    if (number <= 0) fail(key, "must be positive");
    return number;
  }

  bool flag(const std::string& key, bool fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_boolean()) fail(key, "must be true or false, not " + value->dump());
    return value->get<bool>();
  }

  std::string text(const std::string& key, const std::string& fallback) const {
    const Json* value = find(key);
    if (value == nullptr) return fallback;
    if (!value->is_string()) fail(key, "must be a string, not " + value->dump());
    return value->get<std::string>();
  }

  const Json& root() const { return json_; }
  const std::string& name() const { return name_; }

  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& help = {}) const {
    throw UserError(name_ + ": " + key + " " + what, help);
  }

 private:
  std::string name_;
  Json json_;
};

struct Family {
  const char* model_type;
  const char* class_prefix;  // of the names in "architectures"
  bool qkv_bias;
  bool kv_heads_optional;  // absent means as many as query heads; elsewhere Hugging Face has a default of its own
};

constexpr Family kFamilies[] = {
    {"llama", "Llama", false, true},
    {"mistral", "Mistral", false, false},
    {"qwen2", "Qwen2", true, false},
};

const Family& read_family(const ConfigFile& file) {
  const std::string type = file.text("model_type", "");
  std::vector<std::string> known;
  for (const Family& family : kFamilies) {
    if (type == family.model_type) return family;
    known.push_back(family.model_type);
  }
  if (type.empty()) file.fail("model_type", "is missing", "one of: " + join(known, ", "));
  file.fail("model_type", sluice::quoted(type) + " is not supported", "supported: " + join(known, ", "));
}

std::string read_architecture(const ConfigFile& file, const Family& family) {
  const std::string prefix = family.class_prefix;
  const std::vector<std::string> known{prefix + "ForCausalLM", prefix + "ForSequenceClassification"};
  const Json* list = file.find("architectures");
  if (list == nullptr) return known.front();
  if (!list->is_array() || list->size() != 1 || !list->front().is_string()) {
    file.fail("architectures", "must be a list of one name, not " + list->dump());
  }
  const auto name = list->front().get<std::string>();
  if (name != known[0] && name != known[1]) {
    file.fail("architectures", sluice::quoted(name) + " is not supported with model_type " + sluice::quoted(family.model_type),
              "supported: " + join(known, ", "));
  }
  return name;
}

// transformers 4 has rope_theta and rope_scaling at the top, transformers 5 has both in rope_parameters.
void read_rope(const ConfigFile& file, ModelConfig& config) {
  config.rope.theta = file.positive_real(file.root(), "rope_theta", config.rope.theta);
  for (const std::string key : {"rope_scaling", "rope_parameters"}) {
    const Json* rope = file.find(key);
    if (rope == nullptr) continue;
    if (!rope->is_object()) file.fail(key, "must be an object, not " + rope->dump());
    for (const std::string type_key : {"rope_type", "type"}) {
      const Json* type = ConfigFile::find_in(*rope, type_key);
      if (type != nullptr && *type != "default") {
        file.fail(key, "asks for " + type->dump() + " rotary positions, which are not supported", "supported: \"default\"");
      }
    }
    config.rope.theta = file.positive_real(*rope, "rope_theta", config.rope.theta);
    if (file.real(*rope, "partial_rotary_factor", 1.0) != 1.0) file.fail(key, "has a partial_rotary_factor other than 1");
  }
}

void refuse_unless(const ConfigFile& file, const std::string& key, const Json& allowed) {
  const Json* value = file.find(key);
  if (value == nullptr || *value == allowed) return;
  file.fail(key, "is " + value->dump() + ", which changes the model in a way that is not supported",
            "supported: " + allowed.dump());
}

void refuse_sliding_window(const ConfigFile& file, const ModelConfig& config) {
  const bool switched = config.model_type == "qwen2";  // Qwen2 gives a window and turns it off by a second key
  refuse_unless(file, "use_sliding_window", false);
  if (const Json* types = file.find("layer_types")) {
    if (!types->is_array()) file.fail("layer_types", "must be a list, not " + types->dump());
    for (const Json& type : *types) {
      if (type != "full_attention") file.fail("layer_types", "has " + type.dump() + "; only \"full_attention\" is supported");
    }
  }
  if (switched || file.find("sliding_window") == nullptr) return;
  const int64_t window = file.length("sliding_window");
  if (window >= config.max_positions) return;  // never closes
  file.fail("sliding_window", "is " + std::to_string(window) + ": attention over a window is not supported",
            "with \"sliding_window\": null every token sees all before it, which is another model");
}

// Keys that change the maths when they have another value than these.
void refuse_unknown_maths(const ConfigFile& file) {
  refuse_unless(file, "hidden_act", "silu");
  refuse_unless(file, "attention_bias", false);
  refuse_unless(file, "mlp_bias", false);
  refuse_unless(file, "partial_rotary_factor", 1.0);
  refuse_unless(file, "is_encoder_decoder", false);
  refuse_unless(file, "add_cross_attention", false);
  refuse_unless(file, "attention_dropout", 0.0);
  if (file.find("quantization_config") != nullptr) {
    file.fail("quantization_config", "is set: quantised weights are not supported",
              "use the folder in float32, bfloat16 or float16");
  }
}

std::vector<int64_t> read_end_of_sequence(const ConfigFile& file) {
  const Json* value = file.find("eos_token_id");
  if (value == nullptr) return {};
  std::vector<int64_t> ids;
  for (const Json& id : value->is_array() ? *value : Json::array({*value})) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0) file.fail("eos_token_id", "must be a token id or a list of them");
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

void check_consistent(const ConfigFile& file, const ModelConfig& config) {
  if (config.layers > kMostLayers) {
    file.fail("num_hidden_layers",
              "is too large: " + std::to_string(config.layers) + "; at most " + std::to_string(kMostLayers) + " are supported");
  }
  if (config.heads % config.kv_heads != 0) {
    file.fail("num_attention_heads", "(" + std::to_string(config.heads) + ") must be a multiple of num_key_value_heads (" +
                                         std::to_string(config.kv_heads) + ")");
  }
  if (config.head_dim % 2 != 0) {
    file.fail("head_dim", "is " + std::to_string(config.head_dim) + "; rotary positions need an even size");
  }
  for (const int64_t id : config.end_of_sequence) {
    if (id >= config.vocab_size) {
      file.fail("eos_token_id", std::to_string(id) + " is not below vocab_size (" + std::to_string(config.vocab_size) + ")");
    }
  }
}

int64_t read_head_dim(const ConfigFile& file, const ModelConfig& config) {
  if (file.find("head_dim") != nullptr) return file.length("head_dim");
  if (config.hidden_size % config.heads == 0) return config.hidden_size / config.heads;
  file.fail("hidden_size", "(" + std::to_string(config.hidden_size) + ") must be a multiple of num_attention_heads (" +
                               std::to_string(config.heads) + ") where head_dim is not given");
}

}  // namespace

double ModelConfig::score_scale() const {
  return attention_scale == 0 ? 1.0 / std::sqrt(static_cast<double>(head_dim)) : attention_scale;
}

int64_t ModelConfig::steady_positions() const {
  const bool changes = rope.scaling == RopeScaling::kDynamic || rope.scaling == RopeScaling::kLongrope;
  return changes ? std::min(max_positions, rope.original_positions) : max_positions;
}

ModelConfig read_config(const fs::path& folder) {
  const ConfigFile file(folder / "config.json");
  const Family& family = read_family(file);
  ModelConfig config;
  config.architecture = read_architecture(file, family);
  config.model_type = family.model_type;
  config.qkv_bias = family.qkv_bias;
  config.vocab_size = file.length("vocab_size");
  config.hidden_size = file.length("hidden_size");
  config.intermediate_size = file.length("intermediate_size");
  config.layers = file.length("num_hidden_layers");
  config.heads = file.length("num_attention_heads");
  config.kv_heads = file.length("num_key_value_heads", family.kv_heads_optional ? std::optional(config.heads) : std::nullopt);
  config.head_dim = read_head_dim(file, config);
  config.max_positions = file.length("max_position_embeddings");
  config.norm_eps = file.positive_real(file.root(), "rms_norm_eps", config.norm_eps);
  config.tied_embeddings = file.flag("tie_word_embeddings", false);
  config.initializer_range = file.real(file.root(), "initializer_range", config.initializer_range);
  read_rope(file, config);
  refuse_unknown_maths(file);
  refuse_sliding_window(file, config);
  config.end_of_sequence = read_end_of_sequence(file);
  if (config.end_of_sequence.empty() && fs::exists(folder / "generation_config.json")) {
    config.end_of_sequence = read_end_of_sequence(ConfigFile(folder / "generation_config.json"));
  }
  check_consistent(file, config);
  return config;
}

}  // namespace sluice::models
