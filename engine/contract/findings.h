#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "engine/contract/spec/spec.h"

namespace sluice::engine {

/// Findings of a contract's own check.
class Findings {
 public:
  /// `changed` tells whether a key has another value than its default.
  Findings(const Table& table, Problems& problems, std::function<bool(std::string_view)> changed)
      : table_(table), problems_(problems), changed_(std::move(changed)) {}

  /// True if the pipeline writes the key with another value than its default, which is that of the preset if there is one. An
  /// effective pipeline has every default written out, and is as valid as the one that it came from.
  bool changed(std::string_view key) const { return table_.find(key) != nullptr && changed_(key); }

  /// The node cannot work with the value of `key`.
  void error(std::string_view key, std::string message, std::string help = {}) {
    add("setting-unusable", Severity::kError, key, message, help);
  }

  /// Likewise, with what was thrown when its value was used.
  void error(std::string_view key, const UserError& error) { this->error(key, error.message(), error.help()); }

  /// `key` is changed(), but beside the other settings that makes no difference.
  void without_effect(std::string_view key, std::string message, std::string help = {}) {
    add("setting-without-effect", Severity::kError, key, message, help);
  }

  /// Likewise, because of what is written for `other`, whose line is named too.
  void without_effect_beside(std::string_view key, std::string_view other, std::string message, std::string help);

  /// It works, but is hardly what was meant.
  void warning(std::string_view key, std::string message, std::string help = {}) {
    add("setting-doubtful", Severity::kWarning, key, message, help);
  }

 private:
  void add(const char* kind, Severity severity, std::string_view key, const std::string& message, const std::string& help);

  const Table& table_;
  Problems& problems_;
  std::function<bool(std::string_view)> changed_;
};

}  // namespace sluice::engine
