#include "engine/plan/pipeline_changes.h"

#include <algorithm>
#include <map>
#include <utility>

#include "base/text/url_passwords.h"

namespace sluice::engine {

std::vector<EffectiveKey> keys_to_compare(const Plan& plan) {
  std::vector<EffectiveKey> keys;
  for (const EffectiveKey& key : plan.effective) {
    if (key.parts.empty()) keys.push_back(key);
    for (const ParamText& part : key.parts) {
      keys.push_back({.table = key.table,
                      .key = key.key + "." + part.name,
                      .text = part.text,
                      .origin = key.origin,
                      .harmless = key.harmless || part.harmless});
    }
  }
  return keys;
}

std::vector<PipelineChange> pipeline_changes(const std::vector<EffectiveKey>& before, const std::vector<EffectiveKey>& after) {
  std::map<std::pair<std::string, std::string>, std::string> old;
  for (const EffectiveKey& key : before) old[{key.table, key.key}] = key.text;
  std::vector<PipelineChange> changes;
  for (const EffectiveKey& key : after) {
    const auto found = old.extract({key.table, key.key});
    const std::string text = found.empty() ? std::string() : found.mapped();
    if (text == key.text) continue;
    changes.push_back(
        {.table = key.table, .key = key.key, .before = text, .after = key.text, .harmless = key.harmless, .why = key.why});
  }
  for (const EffectiveKey& key : before) {
    if (key.text.empty() || !old.contains({key.table, key.key})) continue;
    // Who has a role changes no result, and other files name other roles.
    const bool is_role = key.table.starts_with("cluster.roles.");
    changes.push_back({.table = key.table, .key = key.key, .before = key.text, .after = {}, .harmless = is_role});
  }
  return changes;
}

std::string change_text(const PipelineChange& change) {
  const auto shown = [](const std::string& text) { return text.empty() ? std::string("not set") : without_passwords(text); };
  return "[" + change.table + "] " + change.key + ": " + shown(change.before) + " -> " + shown(change.after) +
         (change.why.empty() ? "" : " (" + change.why + ")");
}

}  // namespace sluice::engine
