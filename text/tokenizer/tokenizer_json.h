#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

/// The content of one JSON file of a tokenizer. base/json/json.h keeps the order of keys at a price quadratic in their number,
/// which a vocabulary cannot pay; this one does not.
struct TokenizerJson {
  std::string name;  // the path, for messages
  nlohmann::json root;

  /// Throws UserError naming path, line and column when the file is missing, not JSON or nested deeper than 512 levels.
  static TokenizerJson read(const std::filesystem::path& path);
};

/// A value of such a file that knows where it stands, so that whatever is wrong with it can be said with file and key.
/// Borrows from the TokenizerJson. Every accessor throws UserError on a missing key or a wrong type.
class JsonPart {
 public:
  explicit JsonPart(const TokenizerJson& file) : JsonPart(file.root, file.name, "") {}

  bool is_null() const { return value_->is_null(); }
  bool is_string() const { return value_->is_string(); }
  bool is_object() const { return value_->is_object(); }
  const nlohmann::json& value() const { return *value_; }

  bool has(const char* key) const;     // false as well when this is no object or the value is null
  JsonPart at(const char* key) const;  // required
  JsonPart at_or_null(const char* key) const;
  std::vector<JsonPart> elements() const;  // of an array

  const std::string& string() const;
  int64_t integer() const;
  bool boolean() const;
  bool boolean_or(const char* key, bool otherwise) const;
  std::string type() const { return at("type").string(); }

  /// "DIR/tokenizer.json: model.merges[3]"
  std::string place() const;
  [[noreturn]] void fail(const std::string& message, const std::string& help = {}) const;
  [[noreturn]] void fail_unsupported(const std::string& what, const std::string& supported) const;

 private:
  JsonPart(const nlohmann::json& value, const std::string& file, std::string key)
      : value_(&value), file_(&file), key_(std::move(key)) {}

  const nlohmann::json* value_;
  const std::string* file_;
  std::string key_;  // path from the root: model.merges[3]
};

}  // namespace sluice::text
