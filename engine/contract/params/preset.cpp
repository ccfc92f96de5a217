#include "engine/contract/params/preset.h"

#include <algorithm>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::engine {
namespace {

const PresetValue* look_up(const std::vector<PresetValue>& values, std::string_view of, std::string_view key) {
  const auto found = std::ranges::find_if(values, [&](const PresetValue& value) { return value.of == of && value.key == key; });
  return found == values.end() ? nullptr : &*found;
}

// "objective:*" for "objective:ppo_clip"; empty for what is no component.
std::string every_one_of(std::string_view of) {
  const size_t colon = of.find(':');
  return colon == std::string_view::npos ? std::string() : std::string(of.substr(0, colon)) + ":*";
}

}  // namespace

Preset::Preset(std::string name_, std::string summary_) : name(std::move(name_)), summary(std::move(summary_)) {
  where_.source = std::make_shared<const SourceText>(SourceText{.name = "preset " + name, .text = {}});
}

Preset& Preset::set(std::string of, std::string key, decltype(Value::data) data, std::string source) {
  SLUICE_CHECK(look_up(values, of, key) == nullptr, "preset " + name + " sets " + of + "." + key + " twice");
  values.push_back({std::move(of), std::move(key), {std::move(data), where_, {}}, std::move(source)});
  return *this;
}

const PresetValue* Preset::find(std::string_view of, std::string_view key) const {
  const PresetValue* own = look_up(values, of, key);
  return own != nullptr ? own : look_up(values, every_one_of(of), key);
}

PresetScope PresetScope::within(const std::string& key, std::string its_name) const {
  return {.preset = preset, .of = std::move(its_name), .inside = inside.empty() ? key : inside + "." + key, .uses = uses};
}

const Value* PresetScope::value_of(const std::string& key, bool given) const {
  const PresetValue* value = preset == nullptr ? nullptr : preset->find(of, key);
  if (value == nullptr) return nullptr;
  if (uses != nullptr) uses->push_back({inside, key, given});
  return &value->value;
}

std::string describe_text(const Preset& preset) {
  std::string text = preset.name + ": " + preset.summary + "\n\n  kind    preset" +
                     (preset.origin == "builtin" ? "" : ", from " + preset.origin) + "\n\n  values\n";
  size_t width = 0;
  const auto setting = [](const PresetValue& value) { return value.of + "." + value.key + " = " + toml_text(value.value); };
  for (const PresetValue& value : preset.values) width = std::max(width, setting(value).size());
  for (const PresetValue& value : preset.values) {
    const std::string words = setting(value);
    text += "    " + words + std::string(width - words.size(), ' ') + "  " + value.source + "\n";
  }
  return text;
}

}  // namespace sluice::engine
