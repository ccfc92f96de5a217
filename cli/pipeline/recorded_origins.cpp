#include "cli/pipeline/recorded_origins.h"

#include <algorithm>
#include <map>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "engine/plan/recorded_origin.h"

namespace sluice::cli {
namespace {

constexpr int64_t kMostBytes = 1 << 20;  // of a pipeline file

// The lines of a file that config_text() wrote; none of another.
std::vector<std::string> recorded_lines(const std::string& file) {
  try {
    if (!is_file(file)) return {};
    const std::string text = read_file(file, kMostBytes);
    return text.starts_with(engine::kConfigHeading) ? split(text, '\n') : std::vector<std::string>();
  } catch (const UserError&) {
    return {};  // who reads the pipeline says so
  }
}

}  // namespace

void keep_recorded_origins(std::vector<engine::EffectiveKey>& keys) {
  std::map<std::string, std::vector<std::string>> files;
  for (engine::EffectiveKey& key : keys) {
    const size_t end = std::min(key.origin.find("; "), key.origin.size());  // what is written within it is of other layers
    const auto place = engine::place_of_origin(key.origin.substr(0, end));
    if (!place) continue;
    const auto [file, is_new] = files.try_emplace(place->file);
    if (is_new) file->second = recorded_lines(place->file);
    if (place->line > file->second.size()) continue;
    if (std::string origin = engine::recorded_origin(file->second[place->line - 1]); !origin.empty())
      key.origin = origin + key.origin.substr(end);
  }
}

}  // namespace sluice::cli
