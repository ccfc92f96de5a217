#include "models/config/config_rope.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/text/strings.h"

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
    const bool known = !family.longrope_alone || kind == RopeScaling::kNone || kind == RopeScaling::kLongrope;
    if (known && type == name) return kind;
    if (known && name != "su") names.emplace_back(name);
  }
  const std::string key = file.find("rope_scaling") != nullptr ? "rope_scaling" : "rope_parameters";
  file.fail(key, "asks for " + sluice::quoted(type) + " rotary positions, which are not supported by " + family.model_type,
            "supported: " + join(names, ", "));
}

ConfigObject no_rope_object() {
  static const Json nothing = Json::object();
  return {"", "", nothing};
}

// The rotary settings are one object by whichever name; an empty one when there is none.
ConfigObject find_rope(const ConfigObject& file) {
  const bool scaling = file.find("rope_scaling") != nullptr, parameters = file.find("rope_parameters") != nullptr;
  if (scaling && parameters) file.fail("rope_scaling", "and rope_parameters are both given", "keep one of them");
  if (scaling) return file.object("rope_scaling");
  if (parameters) return file.object("rope_parameters");
  return no_rope_object();
}

// Which dimensions of a head are rotated; 0 for all. Absent is the family's own share, a null is all.
int64_t read_dims(const ConfigObject& file, const ConfigObject& rope, const Family& family, int64_t head_dim) {
  constexpr const char* kKey = "partial_rotary_factor";
  const double by_default = file.positive_real(kKey, file.is_null(kKey) ? 1.0 : family.defaults.rotary_share);
  const double share = rope.positive_real(kKey, by_default);
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
  return file.length(kKey, family.longrope_alone ? family.defaults.max_positions : inside);
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

// `longest` here and below: the longest sample, which may become longer.
void read_yarn(const ConfigObject& rope, int64_t& longest, RopeConfig& to) {
  const double ratio = static_cast<double>(longest) / static_cast<double>(to.original_positions);
  to.factor = rope.positive_real("factor", ratio);
  to.attention_factor = yarn_attention_factor(rope, to.factor);
  const double fast = rope.real("beta_fast", 0), slow = rope.real("beta_slow", 0);  // 0 asks for the default
  if (fast > 0) to.beta_fast = fast;
  if (slow > 0) to.beta_slow = slow;
  to.truncate = rope.flag("truncate", !rope.is_null("truncate"));
  if (to.theta <= 1) rope.fail("rope_theta", "must be above 1 for \"yarn\"");
  longest = std::max(longest, stretched(to.original_positions, to.factor));
}

// Ding et al. 2024, "LongRoPE"; the attention factor as Phi-3 defines it.
void read_longrope(const ConfigObject& rope, int64_t longest, size_t pairs, RopeConfig& to) {
  to.short_factors = rope.positive_reals("short_factor", pairs);
  to.long_factors = rope.positive_reals("long_factor", pairs);
  if (to.original_positions < 2) rope.fail("original_max_position_embeddings", "must be at least 2");
  const auto original = static_cast<double>(to.original_positions);
  to.factor = rope.positive_real("factor", static_cast<double>(longest) / original);
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
void read_linear_or_dynamic(const ConfigObject& rope, int64_t& longest, size_t pairs, RopeConfig& to) {
  to.original_positions = longest;
  to.factor = rope.positive_real("factor");
  if (to.scaling == RopeScaling::kDynamic && pairs <= 1) {
    rope.fail("rope_type", "\"dynamic\" needs heads of more than 2 dimensions");
  }
  longest = std::max(longest, stretched(longest, to.factor));
}

// Of one kind of layers, whose settings are `rope`.
RopeConfig read_settings(const ConfigObject& file, const ConfigObject& rope, const Family& family, double default_theta,
                         int64_t head_dim, int64_t& longest) {
  RopeConfig to;
  to.theta = rope.positive_real("rope_theta", default_theta);
  to.dims = read_dims(file, rope, family, head_dim);
  to.scaling = read_kind(file, family, rope);
  to.original_positions = read_original(file, rope, family, longest);
  const auto pairs = static_cast<size_t>((to.dims == 0 ? head_dim : to.dims) / 2);
  switch (to.scaling) {
    case RopeScaling::kNone:
      to.original_positions = longest;
      break;
    case RopeScaling::kLinear:
    case RopeScaling::kDynamic:
      read_linear_or_dynamic(rope, longest, pairs, to);
      break;
    case RopeScaling::kYarn:
      read_yarn(rope, longest, to);
      break;
    case RopeScaling::kLlama3:
      read_llama3(rope, to);
      break;
    case RopeScaling::kLongrope:
      read_longrope(rope, longest, pairs, to);
      break;
  }
  rope.refuse_unknown(kHarmlessRopeKeys, "remove it if these rotary positions do without it");
  return to;
}

// Layers without a window and with one. max_position_embeddings is the length that the former are stretched to.
void read_settings_by_window(const ConfigObject& file, const ConfigObject& all, const Family& family, double theta,
                             ModelConfig& config) {
  constexpr const char *kFullLayers = "full_attention", *kWindowLayers = "sliding_attention";
  const char* const window_key = family.keys.window_rope_theta;
  double window_theta = family.defaults.window_rope_theta.value_or(theta);
  if (window_key != nullptr) window_theta = file.positive_real(window_key, window_theta);
  ConfigObject full = all, window = no_rope_object();
  if (file.find("rope_parameters") != nullptr) {
    const auto part = [&](const char* key) { return all.find(key) != nullptr ? all.object(key) : no_rope_object(); };
    full = part(kFullLayers), window = part(kWindowLayers);
    all.refuse_unknown(
        {}, std::string("expected \"") + kFullLayers + "\" and \"" + kWindowLayers + "\", each with rotary settings of its own");
  }
  int64_t longest = config.max_positions;
  config.rope = read_settings(file, full, family, theta, config.head_dim, longest);
  longest = config.max_positions;
  config.more_ropes = {read_settings(file, window, family, window_theta, config.head_dim, longest)};
}

}  // namespace

void read_rope(const ConfigObject& file, const Family& family, ModelConfig& config) {
  const ConfigObject rope = find_rope(file);
  const double theta = file.positive_real("rope_theta", family.defaults.rope_theta);
  if (family.ropes_by_window) return read_settings_by_window(file, rope, family, theta, config);
  config.rotary_neighbours = family.rotary_neighbours;
  config.rope = read_settings(file, rope, family, theta, config.head_dim, config.max_positions);
}

std::vector<bool> read_rotary_layers(const ConfigObject& file, const Family& family, int64_t layers) {
  constexpr const char* kKey = "no_rope_layers";  // which says where there are rotary positions
  std::vector<bool> rotary(static_cast<size_t>(layers), true);
  if (family.plain_every == 0) return rotary;
  const int64_t every = file.length("no_rope_layer_interval", family.plain_every);
  const Json* flags = file.find(kKey);
  if (flags != nullptr && (!flags->is_array() || flags->size() < rotary.size())) {
    file.fail(kKey,
              "must be a list of " + std::to_string(layers) + " numbers, 1 for a layer with rotary positions and 0 without");
  }
  for (size_t i = 0; i < rotary.size(); ++i) {
    rotary[i] = (i + 1) % static_cast<size_t>(every) != 0;
    if (flags == nullptr) continue;
    if ((*flags)[i] != 0 && (*flags)[i] != 1) file.fail(kKey, "has " + (*flags)[i].dump(), "supported: 0 and 1");
    rotary[i] = (*flags)[i] == 1;
  }
  return rotary;
}

std::vector<int64_t> ropes_of_layers(const Family& family, const std::vector<bool>& rotary, const std::vector<bool>& sliding) {
  std::vector<int64_t> ropes;
  for (size_t i = 0; i < rotary.size(); ++i) ropes.push_back(!rotary[i] ? kNoRope : family.ropes_by_window && sliding[i] ? 1 : 0);
  const bool alike = std::all_of(ropes.begin(), ropes.end(), [](int64_t which) { return which == 0; });
  return alike ? std::vector<int64_t>{} : ropes;
}

}  // namespace sluice::models
