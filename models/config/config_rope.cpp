#include "models/config/config_rope.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/strings.h"

namespace sluice::models {
namespace {

constexpr std::pair<std::string_view, RopeScaling> kKinds[] = {
    {"default", RopeScaling::kNone}, {"linear", RopeScaling::kLinear},     {"dynamic", RopeScaling::kDynamic},
    {"yarn", RopeScaling::kYarn},    {"longrope", RopeScaling::kLongrope}, {"llama3", RopeScaling::kLlama3},
    {"su", RopeScaling::kLongrope},
};

// Allowed beside the keys that a kind reads. The original length says nothing to the kinds that do not ask for it.
constexpr std::string_view kHarmlessRopeKeys[] = {"original_max_position_embeddings", "finetuned"};

RopeScaling read_kind(const ConfigObject& file, const Family& family, const ConfigObject& rope) {
  const std::string older = rope.text("type", "default"), type = rope.text("rope_type", older);
  std::vector<std::string> names;
  for (const auto& [name, kind] : kKinds) {
    const bool known = !family.partial_rotary || kind == RopeScaling::kNone || kind == RopeScaling::kLongrope;
    if (known && type == name) return kind;
    if (known && name != "su") names.emplace_back(name);
  }
  const std::string key = file.find("rope_scaling") != nullptr ? "rope_scaling" : "rope_parameters";
  file.fail(key, "asks for " + sluice::quoted(type) + " rotary positions, which are not supported by " + family.model_type,
            "supported: " + join(names, ", "));
}

// The rotary settings are one object by whichever name; an empty one when there is none.
ConfigObject find_rope(const ConfigObject& file) {
  static const Json nothing = Json::object();
  const bool scaling = file.find("rope_scaling") != nullptr, parameters = file.find("rope_parameters") != nullptr;
  if (scaling && parameters) file.fail("rope_scaling", "and rope_parameters are both given", "keep one of them");
  if (scaling) return file.object("rope_scaling");
  if (parameters) return file.object("rope_parameters");
  return {"", "", nothing};
}

// Which dimensions of a head turn; 0 for all.
int64_t read_dims(const ConfigObject& file, const ConfigObject& rope, const Family& family, int64_t head_dim) {
  const double share = rope.positive_real("partial_rotary_factor", file.positive_real("partial_rotary_factor", 1.0));
  if (share == 1.0) {
    if (head_dim % 2 != 0) {
      file.fail("head_dim", "is " + std::to_string(head_dim) + "; rotary positions need an even size");
    }
    return 0;
  }
  if (!family.partial_rotary) {
    file.fail("partial_rotary_factor", "is " + real_text(share) + "; heads of a " + family.model_type + " turn as a whole",
              "supported: 1.0");
  }
  if (share > 1.0) file.fail("partial_rotary_factor", "must not be above 1");
  const auto dims = static_cast<int64_t>(static_cast<double>(head_dim) * share);
  if (dims == 0 || dims % 2 != 0) {
    file.fail("partial_rotary_factor",
              "lets " + std::to_string(dims) + " of " + std::to_string(head_dim) + " dimensions turn; expected an even number");
  }
  return dims == head_dim ? 0 : dims;
}

// The length at the top counts before the one among the rotary settings. A family that knows it there has a default for it.
int64_t read_original(const ConfigObject& file, const ConfigObject& rope, const Family& family, int64_t max_positions) {
  constexpr const char* kKey = "original_max_position_embeddings";
  const int64_t inside = rope.length(kKey, max_positions);
  return file.length(kKey, family.partial_rotary ? family.defaults.max_positions : inside);
}

// The length that `positions` tokens are stretched to.
int64_t stretched(int64_t positions, double factor) {
  const double length = std::min(static_cast<double>(positions) * factor, static_cast<double>(kLargestLength));
  return std::max<int64_t>(1, static_cast<int64_t>(length));
}

double yarn_scale(double factor, double slope) { return factor <= 1 ? 1.0 : 0.1 * slope * std::log(factor) + 1.0; }

// Peng et al. 2023, "YaRN", eq. 22; with two slopes, as DeepSeek gives them, their ratio.
double yarn_attention_factor(const ConfigObject& rope, double factor) {
  const double slope = rope.real("mscale", 0), slope_all = rope.real("mscale_all_dim", 0);
  if (rope.find("attention_factor") != nullptr) return rope.real("attention_factor", 1.0);
  if (slope > 0 && slope_all > 0) return yarn_scale(factor, slope) / yarn_scale(factor, slope_all);
  return yarn_scale(factor, 1.0);
}

void read_yarn(const ConfigObject& rope, ModelConfig& config) {
  RopeConfig& to = config.rope;
  const double ratio = static_cast<double>(config.max_positions) / static_cast<double>(to.original_positions);
  to.factor = rope.positive_real("factor", ratio);
  to.attention_factor = yarn_attention_factor(rope, to.factor);
  const double fast = rope.real("beta_fast", 0), slow = rope.real("beta_slow", 0);  // 0 asks for the default
  if (fast > 0) to.beta_fast = fast;
  if (slow > 0) to.beta_slow = slow;
  to.truncate = rope.flag("truncate", !rope.is_null("truncate"));
  if (to.theta <= 1) rope.fail("rope_theta", "must be above 1 for \"yarn\"");
  config.max_positions = std::max(config.max_positions, stretched(to.original_positions, to.factor));
}

// Ding et al. 2024, "LongRoPE"; the attention factor as Phi-3 defines it.
void read_longrope(const ConfigObject& rope, ModelConfig& config) {
  RopeConfig& to = config.rope;
  const auto pairs = static_cast<size_t>(config.rotary_dims() / 2);
  to.short_factors = rope.positive_reals("short_factor", pairs);
  to.long_factors = rope.positive_reals("long_factor", pairs);
  if (to.original_positions < 2) rope.fail("original_max_position_embeddings", "must be at least 2");
  const auto original = static_cast<double>(to.original_positions);
  to.factor = rope.positive_real("factor", static_cast<double>(config.max_positions) / original);
  const double computed = to.factor <= 1 ? 1.0 : std::sqrt(1 + std::log(to.factor) / std::log(original));
  to.attention_factor = rope.real("attention_factor", computed);
}

void read_llama3(const ConfigObject& rope, RopeConfig& to) {
  to.factor = rope.positive_real("factor");
  to.low_frequency_factor = rope.positive_real("low_freq_factor");
  to.high_frequency_factor = rope.positive_real("high_freq_factor");
  if (to.high_frequency_factor <= to.low_frequency_factor) rope.fail("high_freq_factor", "must be above low_freq_factor");
}

// Both count from the length that max_position_embeddings gives.
void read_linear_or_dynamic(const ConfigObject& rope, ModelConfig& config) {
  config.rope.original_positions = config.max_positions;
  config.rope.factor = rope.positive_real("factor");
  if (config.rope.scaling == RopeScaling::kDynamic && config.rotary_dims() <= 2) {
    rope.fail("rope_type", "\"dynamic\" needs heads of more than 2 dimensions");
  }
  config.max_positions = std::max(config.max_positions, stretched(config.max_positions, config.rope.factor));
}

}  // namespace

void read_rope(const ConfigObject& file, const Family& family, ModelConfig& config) {
  const ConfigObject rope = find_rope(file);
  RopeConfig& to = config.rope;
  to.theta = rope.positive_real("rope_theta", file.positive_real("rope_theta", family.defaults.rope_theta));
  to.dims = read_dims(file, rope, family, config.head_dim);
  to.scaling = read_kind(file, family, rope);
  to.original_positions = read_original(file, rope, family, config.max_positions);
  switch (to.scaling) {
    case RopeScaling::kNone:
      to.original_positions = config.max_positions;
      break;
    case RopeScaling::kLinear:
    case RopeScaling::kDynamic:
      read_linear_or_dynamic(rope, config);
      break;
    case RopeScaling::kYarn:
      read_yarn(rope, config);
      break;
    case RopeScaling::kLlama3:
      read_llama3(rope, to);
      break;
    case RopeScaling::kLongrope:
      read_longrope(rope, config);
      break;
  }
  rope.refuse_unknown(kHarmlessRopeKeys, "remove it if these rotary positions do without it");
}

}  // namespace sluice::models
