#include "cli/pipeline/recorded_origins.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "engine/text/plan_text.h"

namespace sluice::cli {
namespace {

constexpr int64_t kMostBytes = 1 << 20;  // of a pipeline file

struct Place {
  std::string file;
  size_t line = 0;  // from 1
};

// Of "runs/ppo/pipeline.toml:12".
std::optional<Place> place_of(const std::string& origin) {
  const size_t colon = origin.rfind(':');
  if (colon == std::string::npos) return std::nullopt;
  Place place{origin.substr(0, colon)};
  const char* end = origin.data() + origin.size();
  const auto [stop, fault] = std::from_chars(origin.data() + colon + 1, end, place.line);
  return fault == std::errc() && stop == end && place.line > 0 ? std::optional(place) : std::nullopt;
}

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

// What stands after `key = value` in a line of config_text().
std::string comment_of(const std::string& line) {
  constexpr std::string_view kComment = "  # ";
  const size_t comment = line.rfind(kComment);
  return comment == std::string::npos ? std::string() : line.substr(comment + kComment.size());
}

}  // namespace

void keep_recorded_origins(std::vector<engine::EffectiveKey>& keys) {
  std::map<std::string, std::vector<std::string>> files;
  for (engine::EffectiveKey& key : keys) {
    const size_t end = std::min(key.origin.find("; "), key.origin.size());  // what is written within it is of other layers
    const std::optional<Place> place = place_of(key.origin.substr(0, end));
    if (!place) continue;
    const auto [file, is_new] = files.try_emplace(place->file);
    if (is_new) file->second = recorded_lines(place->file);
    if (place->line > file->second.size()) continue;
    if (std::string origin = comment_of(file->second[place->line - 1]); !origin.empty())
      key.origin = origin + key.origin.substr(end);
  }
}

}  // namespace sluice::cli
