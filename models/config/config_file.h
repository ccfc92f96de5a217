#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json/json.h"

namespace sluice::models {

/// An object of config.json with typed look-ups. A null counts as absent. Every look-up throws UserError naming the file and the
/// key when the value has another type or is out of range. Remembers which keys were asked for: what nobody asks for, nobody
/// understands. A view: the JSON must outlive it. Not thread-safe.
class ConfigObject {
 public:
  /// `prefix` comes before a key in messages: "" or "rope_scaling.".
  ConfigObject(std::string file, std::string prefix, const Json& object);

  const Json* find(const std::string& key) const;
  bool is_null(const std::string& key) const;  // there, and null

  int64_t length(const std::string& key, std::optional<int64_t> fallback = {}) const;  // 1 to kLargestLength
  double real(const std::string& key, double fallback) const;                          // 0 to kLargestReal
  double positive_real(const std::string& key, std::optional<double> fallback = {}) const;
  bool flag(const std::string& key, bool fallback) const;
  std::string text(const std::string& key, const std::string& fallback) const;
  std::vector<double> positive_reals(const std::string& key, size_t count) const;
  std::vector<std::string> texts(const std::string& key, size_t count) const;
  ConfigObject object(const std::string& key) const;

  /// Throws unless `key` is absent or has this value: other values change the maths in a way that is not supported.
  void refuse_unless(const std::string& key, const Json& allowed) const;

  /// Throws when there is a key that nobody asked for, that is not among `harmless`, and that says something: not null, false or
  /// empty, and not beginning with "_". Names all of them.
  void refuse_unknown(std::span<const std::string_view> harmless, const std::string& help) const;

  [[noreturn]] void fail(const std::string& key, const std::string& what, const std::string& help = {}) const;

 private:
  double number(const std::string& key, const Json& value) const;

  std::string file_;
  std::string prefix_;
  const Json* object_;
  mutable std::set<std::string, std::less<>> asked_;
};

/// Far above any model, low enough that nothing computed from a damaged file overflows or fills the memory.
inline constexpr int64_t kLargestLength = int64_t{1} << 24;
inline constexpr double kLargestReal = 1e30;

/// Reads a JSON object of at most 1 MB. Throws UserError naming the file: missing, too large, not JSON, not an object.
Json read_config_json(const std::filesystem::path& path);

}  // namespace sluice::models
