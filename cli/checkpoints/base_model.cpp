#include "cli/checkpoints/base_model.h"

#include <filesystem>
#include <string_view>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/path_kind.h"
#include "base/files/user_path.h"
#include "base/text/strings.h"
#include "models/folder/hub_cache.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kMostCardBytes = 1 << 20;
constexpr std::string_view kCacheName = "models--";

// .../models--ORG--NAME/snapshots/COMMIT
void add_id(const fs::path& folder, BaseModel& base) {
  const fs::path snapshots = folder.parent_path(), model = snapshots.parent_path();
  const std::string name = model.filename().string();
  if (snapshots.filename() != "snapshots" || !name.starts_with(kCacheName)) return;
  std::string id = name.substr(kCacheName.size());
  for (size_t at = id.find("--"); at != std::string::npos; at = id.find("--", at)) id.replace(at, 2, "/");
  if (!models::hub_model(id)) return;
  base.id = id;
  base.revision = folder.filename().string();
}

// `key: value` of the lines between the first two `---` of a card, which are YAML; only plain and quoted texts are read.
std::string front_matter_value(std::string_view card, std::string_view key) {
  bool inside = false;
  for (const std::string& written : split(card, '\n')) {
    const std::string_view line = trim(written);
    if (line == "---") {
      if (inside) return {};
      inside = true;
      continue;
    }
    if (!inside) return {};
    if (!written.starts_with(key) || written.substr(key.size(), 1) != ":") continue;
    std::string_view value = trim(std::string_view(written).substr(key.size() + 1));
    if (const size_t comment = value.find(" #"); comment != std::string_view::npos) value = trim(value.substr(0, comment));
    const bool in_quotes = value.size() >= 2 && value.front() == value.back() && (value.front() == '"' || value.front() == '\'');
    return std::string(in_quotes ? value.substr(1, value.size() - 2) : value);
  }
  return {};
}

void add_license(const fs::path& folder, BaseModel& base) {
  if (!is_file(folder / "README.md")) return;
  const std::string card = read_file(folder / "README.md", kMostCardBytes);
  base.license = front_matter_value(card, "license");
  base.license_name = front_matter_value(card, "license_name");
  base.license_link = front_matter_value(card, "license_link");
}

}  // namespace

BaseModel base_model(const RecordedPipeline& pipeline, const std::string& model) {
  BaseModel base;
  base.random = pipeline.text("models." + model, "init") == "random";
  const std::string written = pipeline.text("models." + model, "checkpoint");
  if (base.random || written.empty()) return base;
  try {
    const fs::path folder = expanded_path(written);
    add_id(folder, base);
    add_license(folder, base);
  } catch (const UserError&) {
    // A folder that is not here, or a card that nobody can read, says nothing.
  }
  return base;
}

}  // namespace sluice::cli
