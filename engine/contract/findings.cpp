#include "engine/contract/findings.h"

namespace sluice::engine {

void Findings::without_effect_beside(std::string_view key, std::string_view other, std::string message, std::string help) {
  without_effect(key, std::move(message), std::move(help));
  const Entry* beside = table_.find(other);
  if (beside == nullptr || !beside->key_where.known()) return;
  const SourceSpan& where = beside->key_where;
  problems_.back().notes.push_back(std::string(other) + " stands at " + where.source->name + ":" + std::to_string(where.line));
}

void Findings::add(const char* kind, Severity severity, std::string_view key, const std::string& message,
                   const std::string& help) {
  const Entry* entry = table_.find(key);
  problems_.push_back({.kind = kind,
                       .where = entry != nullptr ? entry->value.where : table_.where,
                       .message = message,
                       .caret = {},
                       .notes = {},
                       .help = help,
                       .severity = severity});
}

}  // namespace sluice::engine
