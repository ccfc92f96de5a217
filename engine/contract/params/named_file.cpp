#include "engine/contract/params/named_file.h"

#include <cctype>
#include <string_view>
#include <variant>

#include "base/error.h"
#include "engine/contract/params/param_values.h"

namespace sluice::engine {
namespace {

void add_named_file(const Value& value, const ParamInfo& info, std::vector<NamedFile>& files) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) return;
  try {
    const std::string path = detail::meant_path(*text, value.base, info).string();
    const size_t fixed = info.kind == ParamKind::kPaths ? path.find_first_of("*?[") : std::string::npos;
    files.push_back({path.substr(0, fixed), fixed != std::string::npos, value.where});
  } catch (const UserError&) {
    // Binding says why.
  }
}

bool is_of_name(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' || c == '/';
}

// Whether the path of a file ends before `rest`; that of a folder does, and the name of a file in it follows.
bool ends_before(std::string_view rest) {
  if (rest.starts_with('.')) rest.remove_prefix(1);  // of the sentence
  return rest.empty() || !is_of_name(rest[0]) || rest[0] == '/';
}

// Its path is there, and is no part of a longer one.
bool names(std::string_view message, const NamedFile& file) {
  if (file.path.empty()) return false;
  for (size_t at = message.find(file.path); at != std::string_view::npos; at = message.find(file.path, at + 1)) {
    const bool begins = at == 0 || !is_of_name(message[at - 1]);
    if (begins && (file.is_pattern || file.path.ends_with('/') || ends_before(message.substr(at + file.path.size()))))
      return true;
  }
  return false;
}

}  // namespace

std::vector<NamedFile> named_files(const Table& table, const ParamTable& params) {
  std::vector<NamedFile> files;
  for (const Entry& entry : table.entries) {
    const Param* param = params.find(entry.key);
    if (param == nullptr) continue;
    if (param->info.kind == ParamKind::kPath) add_named_file(entry.value, param->info, files);
    if (param->info.kind != ParamKind::kPaths) continue;
    add_named_file(entry.value, param->info, files);
    if (const auto* array = std::get_if<Array>(&entry.value.data)) {
      for (const Value& value : *array) add_named_file(value, param->info, files);
    }
  }
  return files;
}

SourceSpan place_named_in(const std::string& message, const std::vector<NamedFile>& files) {
  SourceSpan place;
  size_t longest = 0;
  for (const NamedFile& file : files) {
    if (file.path.size() <= longest || !names(message, file)) continue;
    place = file.where;
    longest = file.path.size();
  }
  return place;
}

}  // namespace sluice::engine
