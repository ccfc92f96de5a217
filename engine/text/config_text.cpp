#include <algorithm>

#include "base/text/strings.h"
#include "engine/contract/settings.h"
#include "engine/plan/bind_settings.h"
#include "engine/plan/recorded_origin.h"
#include "engine/text/plan_text.h"

// config_text of plan_text.h.
namespace sluice::engine {
namespace {

// The tables in the order of a pipeline file. A model without keys is still a model.
std::vector<std::string> tables_of(const Plan& plan) {
  std::vector<std::string> tables;
  for (const SettingsTable& table : settings_tables()) tables.push_back(table.name);
  for (const PlanRole* const role : plan.all_roles()) tables.push_back("cluster.roles." + role->name);
  for (const auto& [name, settings] : plan.device_settings) tables.push_back(device_table(name));
  for (const PlanModel& model : plan.models) tables.push_back("models." + model.name);
  for (const PlanNode& node : plan.nodes) tables.push_back("nodes." + node.name);
  return tables;
}

std::string key_text(const EffectiveKey& key) {
  return key.text.empty() ? "# " + key.key + " is not set" : key.key + " = " + key.text;
}

std::string table_text(const Plan& plan, const std::string& table) {
  constexpr size_t kWidest = 60;  // longer values do not push the comments of the others away
  std::vector<const EffectiveKey*> keys;
  size_t width = 0;
  for (const EffectiveKey& key : plan.effective) {
    if (key.table != table) continue;
    keys.push_back(&key);
    if (const size_t size = key_text(key).size(); size <= kWidest) width = std::max(width, size);
  }
  std::string text = "\n[" + table + "]\n";
  for (const EffectiveKey* key : keys) {
    const std::string line = key_text(*key);
    const std::string gap(line.size() < width ? width - line.size() : 0, ' ');
    text += key->text.empty() ? line + "\n" : line + gap + "  # " + key->origin + "\n";
  }
  return text;
}

}  // namespace

std::string config_text(const Plan& plan) {
  std::string text(kConfigHeading);
  if (!plan.plugins.empty()) {
    std::vector<std::string> plugins;
    for (const std::string& plugin : plan.plugins) plugins.push_back(sluice::quoted(plugin));
    text += "\nplugins = [" + join(plugins, ", ") + "]\n";
  }
  for (const std::string& table : tables_of(plan)) text += table_text(plan, table);
  return text;
}

}  // namespace sluice::engine
