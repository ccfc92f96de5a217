#include "engine/contract/key_help.h"

#include <algorithm>

#include "base/text/strings.h"
#include "engine/contract/params/foreign_names.h"
#include "engine/contract/settings.h"

namespace sluice::engine {
namespace {

bool has(const std::vector<ParamInfo>& params, std::string_view key) {
  return std::ranges::any_of(params, [&](const ParamInfo& param) { return param.name == key; });
}

// What a key may stand in, named as ForeignKey::of names it.
struct Place {
  std::string of;
  std::vector<ParamInfo> keys;
};

std::vector<Place> places(const Registry& registry) {
  std::vector<Place> all;
  for (const SettingsTable& table : settings_tables()) all.push_back({"[" + table.name + "]", table.params.infos()});
  all.push_back({"[cluster.roles.NAME]", role_params().erased().infos()});
  all.push_back({"[devices.NAME]", device_params().erased().infos()});
  if (const ModelType* model = registry.model_type()) {
    all.push_back({"models", model->params().infos()});
    for (const ParamInfo& key : model->params().infos()) {
      if (!key.children.empty()) all.push_back({"models." + key.name, key.children});
    }
  }
  for (const auto& [name, type] : registry.nodes()) all.push_back({name, type.params.infos()});
  for (const auto& [key, type] : registry.components()) all.push_back({key.first + ":" + key.second, type.params.infos()});
  return all;
}

std::string other_place_text(const std::string& key, const Registry& registry) {
  constexpr size_t kMost = 3;  // a key that is everywhere says nothing
  const std::vector<std::string> found = places_of_key(key, registry);
  return found.empty() || found.size() > kMost ? std::string() : key + " stands " + join(found, ", or ");
}

}  // namespace

std::vector<std::string> places_of_key(std::string_view key, const Registry& registry) {
  std::vector<std::string> found;
  for (const Place& place : places(registry)) {
    if (has(place.keys, key)) found.push_back(place_text(place.of));
  }
  return found;
}

bool has_key(std::string_view of, std::string_view key, const Registry& registry) {
  const std::vector<Place> all = places(registry);
  return std::ranges::any_of(all, [&](const Place& place) { return place.of == of && has(place.keys, key); });
}

KeyHelp help_for_unknown_key(const std::string& key, const std::vector<std::string>& known, const std::string& owner,
                             const Registry& registry) {
  std::vector<ForeignKey> rows = foreign_keys(key);
  for (const ForeignKey& row : rows) {
    const bool is_here = std::ranges::find(known, row.key) != known.end();
    if (!is_here) continue;
    std::string caret = "here this is " + std::string(row.key) + (row.says.empty() ? "" : " (" + std::string(row.says) + ")");
    return {.caret = std::move(caret), .help = {}, .meant = std::string(row.key)};
  }
  std::erase_if(rows, [&](const ForeignKey& row) { return !row.of.empty() && !has_key(row.of, row.key, registry); });
  if (std::string text = foreign_key_text(key, rows); !text.empty()) return {.caret = {}, .help = std::move(text), .meant = {}};

  const std::string near = did_you_mean(key, known), elsewhere = other_place_text(key, registry);
  if (!near.empty()) return {.caret = "did you mean " + near + "?", .help = elsewhere, .meant = near};
  if (!elsewhere.empty()) return {.caret = {}, .help = elsewhere, .meant = {}};
  return {.caret = {}, .help = known.empty() ? owner + " has no parameters" : "it has " + join(known, ", "), .meant = {}};
}

}  // namespace sluice::engine
