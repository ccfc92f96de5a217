#include "models/config/config_windows.h"

#include <algorithm>

#include "base/text/strings.h"

namespace sluice::models {
namespace {

constexpr const char* kSliding = "sliding_attention";
constexpr const char* kFull = "full_attention";

// sliding_window: absent is the family's own, null is none.
std::optional<int64_t> read_window(const ConfigObject& file, const Family& family) {
  if (family.windows == WindowRule::kNone) return std::nullopt;
  const bool switched = family.windows == WindowRule::kUpperLayers || family.windows == WindowRule::kWithoutRotary;
  if (switched && !file.flag("use_sliding_window", false)) {
    file.find("sliding_window");  // switched off
    return std::nullopt;
  }
  if (file.is_null("sliding_window")) return std::nullopt;
  if (file.find("sliding_window") == nullptr) return family.default_window;
  return file.length("sliding_window");
}

// Which layers have the window where layer_types does not say.
std::vector<bool> sliding_layers(const ConfigObject& file, const Family& family, const std::vector<bool>& rotary, bool window) {
  std::vector<bool> sliding(rotary.size(), false);
  const auto layers = static_cast<int64_t>(rotary.size());
  int64_t first = layers, pattern = family.window_pattern;
  if (family.windows == WindowRule::kAllLayers) first = 0;
  if (family.windows == WindowRule::kUpperLayers) {
    const Json* zero = file.find("max_window_layers");
    first = zero != nullptr && *zero == 0 ? 0 : file.length("max_window_layers", 28);
  }
  if (family.windows == WindowRule::kWithoutRotary) file.find("max_window_layers");  // published, and not read
  if (family.keys.window_pattern != nullptr) pattern = file.length(family.keys.window_pattern, pattern);
  for (int64_t i = 0; i < layers; ++i) {
    const auto layer = static_cast<size_t>(i);
    const bool by_pattern = family.windows == WindowRule::kAllButEvery && (i + 1) % pattern != 0;
    const bool without_rotary = family.windows == WindowRule::kWithoutRotary && !rotary[layer];
    sliding[layer] = by_pattern || (window && (without_rotary || i >= first));
  }
  return sliding;
}

// layer_types decides where the family reads it; in the others it must say what is the case.
std::vector<bool> with_layer_types(const ConfigObject& file, const Family& family, std::vector<bool> sliding) {
  if (file.find("layer_types") == nullptr) return sliding;
  const std::vector<std::string> types = file.texts("layer_types", sliding.size());
  const bool decides = family.windows != WindowRule::kNone && family.windows != WindowRule::kAllLayers;
  for (size_t i = 0; i < types.size(); ++i) {
    if (types[i] != kSliding && types[i] != kFull) {
      file.fail("layer_types", "has " + sluice::quoted(types[i]),
                std::string("supported: \"") + kFull + "\" and \"" + kSliding + "\"");
    }
    const bool given = types[i] == kSliding;
    if (!decides && given != sliding[i]) {
      file.fail("layer_types", "has " + sluice::quoted(types[i]) + " for layer " + std::to_string(i) + ", but the layers of a " +
                                   family.model_type + " do not differ, and sliding_window says otherwise");
    }
    sliding[i] = given;
  }
  return sliding;
}

}  // namespace

std::vector<bool> read_windows(const ConfigObject& file, const Family& family, const std::vector<bool>& rotary,
                               ModelConfig& config) {
  const std::optional<int64_t> window = read_window(file, family);
  std::vector<bool> sliding = with_layer_types(file, family, sliding_layers(file, family, rotary, window.has_value()));
  const bool any = std::find(sliding.begin(), sliding.end(), true) != sliding.end();
  if (any && !window) {
    file.fail("sliding_window", "is not set, but some layers have a window",
              "give the window, or \"layer_types\" of \"full_attention\" only");
  }
  if (!any || *window >= config.max_positions) return sliding;
  for (const bool slides : sliding) config.windows.push_back(slides ? *window : 0);
  return sliding;
}

}  // namespace sluice::models
