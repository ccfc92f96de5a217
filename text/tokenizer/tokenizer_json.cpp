#include "text/tokenizer/tokenizer_json.h"

#include <algorithm>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/git_lfs.h"
#include "base/text/strings.h"

namespace sluice::text {
namespace {

constexpr int kDeepest = 512;

std::string line_and_column(std::string_view text, size_t byte) {
  const std::string_view before = text.substr(0, byte == 0 ? 0 : byte - 1);
  const auto line = 1 + std::count(before.begin(), before.end(), '\n');
  const size_t line_start = before.rfind('\n') + 1;  // npos + 1 is 0
  return std::to_string(line) + ":" + std::to_string(before.size() - line_start + 1);
}

}  // namespace

TokenizerJson TokenizerJson::read(const std::filesystem::path& path) {
  const std::string text = read_file(path);
  refuse_lfs_pointer(text, path.string());
  bool too_deep = false;
  const auto limit_depth = [&](int depth, nlohmann::json::parse_event_t, nlohmann::json&) {
    too_deep |= depth > kDeepest;
    return depth <= kDeepest;
  };
  try {
    TokenizerJson file{path.string(), nlohmann::json::parse(text, limit_depth)};
    if (too_deep) throw UserError(path.string() + " nests deeper than " + std::to_string(kDeepest) + " levels");
    return file;
  } catch (const nlohmann::json::parse_error& error) {
    throw UserError(path.string() + ":" + line_and_column(text, error.byte) + ": this is not valid JSON",
                    "the file may be cut short; download it again");
  } catch (const nlohmann::json::out_of_range&) {  // 1e999; the library does not say where
    throw UserError(path.string() + " holds a number that is too large for a double");
  }
}

bool JsonPart::has(const char* key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonPart JsonPart::at_or_null(const char* key) const {
  static const nlohmann::json kNull;
  if (!value_->is_object()) fail("an object was expected here, this is " + std::string(value_->type_name()));
  const auto found = value_->find(key);
  return {found == value_->end() ? kNull : *found, *file_, key_.empty() ? key : key_ + "." + key};
}

JsonPart JsonPart::at(const char* key) const {
  JsonPart part = at_or_null(key);
  if (!value_->contains(key)) fail("the key " + sluice::quoted(key) + " is missing");
  return part;
}

std::vector<JsonPart> JsonPart::elements() const {
  if (!value_->is_array()) fail("a list was expected here, this is " + std::string(value_->type_name()));
  std::vector<JsonPart> parts;
  for (const auto& element : *value_) {
    parts.push_back({element, *file_, key_ + "[" + std::to_string(parts.size()) + "]"});
  }
  return parts;
}

const std::string& JsonPart::string() const {
  if (!value_->is_string()) fail("a string was expected here, this is " + std::string(value_->type_name()));
  return value_->get_ref<const std::string&>();
}

int64_t JsonPart::integer() const {
  if (!value_->is_number_integer()) fail("an integer was expected here, this is " + std::string(value_->type_name()));
  const bool too_large = value_->is_number_unsigned() && value_->get<uint64_t>() > INT64_MAX;
  if (too_large) fail("the integer is out of range");
  return value_->get<int64_t>();
}

bool JsonPart::boolean() const {
  if (!value_->is_boolean()) fail("true or false was expected here, this is " + std::string(value_->type_name()));
  return value_->get<bool>();
}

bool JsonPart::boolean_or(const char* key, bool otherwise) const {
  const JsonPart part = at_or_null(key);
  return part.is_null() ? otherwise : part.boolean();
}

std::string JsonPart::place() const { return key_.empty() ? *file_ : *file_ + ": " + key_; }

void JsonPart::fail(const std::string& message, const std::string& help) const {
  throw UserError(place() + ": " + message, help);
}

void JsonPart::fail_unsupported(const std::string& what, const std::string& supported) const {
  fail(what + " is not supported; supported: " + supported, "docs/bring-your-own.md lists the tokenizers that are");
}

}  // namespace sluice::text
