#include "models/config/config_file.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/git_lfs.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace fs = std::filesystem;
namespace {

constexpr uintmax_t kLargestFile = 1'000'000;

// Of a value in a message.
std::string shown(const Json& value) {
  constexpr size_t kLongest = 80;
  std::string text = value.dump(-1, ' ', true);  // ASCII: can be cut anywhere
  if (text.size() > kLongest) text = text.substr(0, kLongest) + "...";
  return text;
}

bool says_nothing(const std::string& key, const Json& value) {
  if (key.starts_with('_') || value.is_null() || value == false) return true;
  return (value.is_string() || value.is_structured()) && (value.empty() || value == "");
}

// PEFT saves adapters into folders that have no config.json.
void refuse_adapter(const fs::path& folder) {
  if (is_there(folder / "config.json") || !is_there(folder / "adapter_config.json")) return;
  throw UserError(folder.string() + ": an adapter of PEFT, which is no model by itself",
                  "take its base model, and lora = { adapter = " + sluice::quoted(folder.string()) +
                      ", ... } beside it; or merge it into that model with PEFT (merge_and_unload)");
}

}  // namespace

ConfigObject::ConfigObject(std::string file, std::string prefix, const Json& object)
    : file_(std::move(file)), prefix_(std::move(prefix)), object_(&object) {
  SLUICE_CHECK(object.is_object(), "a config object must be an object");
}

const Json* ConfigObject::find(const std::string& key) const {
  asked_.insert(key);
  const auto found = object_->find(key);
  return found == object_->end() || found->is_null() ? nullptr : &*found;
}

bool ConfigObject::is_null(const std::string& key) const {
  asked_.insert(key);
  const auto found = object_->find(key);
  return found != object_->end() && found->is_null();
}

int64_t ConfigObject::length(const std::string& key, std::optional<int64_t> fallback) const {
  const Json* value = find(key);
  if (value == nullptr && fallback) return *fallback;
  if (value == nullptr) fail(key, "is missing");
  if (!value->is_number_integer()) fail(key, "must be an integer, not " + shown(*value));
  if (value->is_number_unsigned() && value->get<uint64_t>() > kLargestLength) {
    fail(key, "is too large: " + value->dump() + "; at most " + std::to_string(kLargestLength) + " is supported");
  }
  const auto number = value->get<int64_t>();
  if (number < 1) fail(key, "must be positive, not " + value->dump());
  return number;
}

double ConfigObject::number(const std::string& key, const Json& value) const {
  if (!value.is_number()) fail(key, "must be a number, not " + shown(value));
  const auto number = value.get<double>();
  if (!std::isfinite(number) || number < 0) fail(key, "must be finite and not negative, not " + value.dump());
  if (number > kLargestReal) fail(key, "is too large: " + value.dump());
  return number;
}

double ConfigObject::real(const std::string& key, double fallback) const {
  const Json* value = find(key);
  return value == nullptr ? fallback : number(key, *value);
}

double ConfigObject::positive_real(const std::string& key, std::optional<double> fallback) const {
  if (find(key) == nullptr && !fallback) fail(key, "is missing");
  const double number = real(key, fallback.value_or(0));
  if (number <= 0) fail(key, "must be positive");
  return number;
}

bool ConfigObject::flag(const std::string& key, bool fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_boolean()) fail(key, "must be true or false, not " + shown(*value));
  return value->get<bool>();
}

std::string ConfigObject::text(const std::string& key, const std::string& fallback) const {
  const Json* value = find(key);
  if (value == nullptr) return fallback;
  if (!value->is_string()) fail(key, "must be a string, not " + shown(*value));
  return value->get<std::string>();
}

std::vector<double> ConfigObject::positive_reals(const std::string& key, size_t count) const {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  if (!value->is_array() || value->size() != count)
    fail(key, "must be a list of " + plural(static_cast<int64_t>(count), "number"));
  std::vector<double> numbers;
  for (const Json& item : *value) {
    numbers.push_back(number(key, item));
    if (numbers.back() <= 0) fail(key, "must hold positive numbers, not " + item.dump());
  }
  return numbers;
}

std::vector<std::string> ConfigObject::texts(const std::string& key, size_t count) const {
  const Json* value = find(key);
  if (value == nullptr) return {};
  if (!value->is_array()) fail(key, "must be a list, not " + shown(*value));
  if (value->size() != count)
    fail(key,
         "must have " + (count == 1 ? "1 entry" : std::to_string(count) + " entries") + ", not " + std::to_string(value->size()));
  std::vector<std::string> result;
  for (const Json& item : *value) {
    if (!item.is_string()) fail(key, "must be a list of strings, not of " + shown(item));
    result.push_back(item.get<std::string>());
  }
  return result;
}

ConfigObject ConfigObject::object(const std::string& key) const {
  const Json* value = find(key);
  if (value == nullptr) fail(key, "is missing");
  if (!value->is_object()) fail(key, "must be an object, not " + shown(*value));
  return {file_, prefix_ + key + ".", *value};
}

void ConfigObject::refuse_unless(const std::string& key, const Json& allowed) const {
  const Json* value = find(key);
  if (value == nullptr || *value == allowed) return;
  fail(key, "is " + shown(*value) + ", which changes the model in a way that is not supported", "supported: " + allowed.dump());
}

void ConfigObject::refuse_unknown(std::span<const std::string_view> harmless, const std::string& help) const {
  constexpr size_t kMostShown = 20;
  std::vector<std::string> known(asked_.begin(), asked_.end());
  known.insert(known.end(), harmless.begin(), harmless.end());
  const std::set<std::string_view> understood(known.begin(), known.end());
  Problems problems;
  for (const auto& [key, value] : object_->items()) {
    if (understood.contains(key) || says_nothing(key, value)) continue;
    const std::string near = did_you_mean(key, known);
    problems.push_back({.where = {},
                        .message = file_ + ": " + prefix_ + key + " is not known, and may change the model: " + shown(value),
                        .caret = {},
                        .notes = {},
                        .help = near.empty() ? help : "did you mean " + near + "? Otherwise: " + help});
    if (problems.size() == kMostShown) break;
  }
  if (!problems.empty()) throw UserError(std::move(problems));
}

void ConfigObject::fail(const std::string& key, const std::string& what, const std::string& help) const {
  throw UserError(file_ + ": " + prefix_ + key + " " + what, help);
}

Json read_config_json(const fs::path& path) {
  refuse_adapter(path.parent_path());
  const std::string text = read_file(path, kLargestFile);
  refuse_lfs_pointer(text, path.string());
  Json json = parse_json(text, path.string());
  if (!json.is_object()) throw UserError(path.string() + ": a JSON object was expected");
  return json;
}

}  // namespace sluice::models
