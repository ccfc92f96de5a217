#include "cli/model_marks.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/crc32c.h"
#include "base/error.h"
#include "base/file.h"
#include "base/file_part.h"
#include "base/folder.h"
#include "base/path_kind.h"
#include "base/strings.h"
#include "cli/recorded_pipeline.h"
#include "engine/plan/pipeline_changes.h"
#include "models/folder/hub_cache.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr int64_t kBeginning = 1 << 20, kBlock = 64 << 10, kBlocks = 15;
constexpr std::array<std::string_view, 4> kRead{".safetensors", ".json", ".jinja", ".model"};

bool is_read(const fs::path& path) {
  const std::string extension = path.extension().string();
  return std::ranges::find(kRead, extension) != kRead.end() && is_file(path);
}

uint32_t add_samples(const fs::path& path, int64_t bytes, uint32_t checksum) {
  checksum = crc32c(read_part_of_file(path, 0, kBeginning), checksum);
  for (int64_t block = 1; block <= kBlocks && bytes > kBeginning; ++block)
    checksum = crc32c(read_part_of_file(path, bytes / kBlocks * block - kBlock, kBlock), checksum);
  return checksum;
}

std::string mark_of(const fs::path& folder) {
  std::vector<fs::path> files = entries_of(folder);
  std::erase_if(files, [](const fs::path& path) { return !is_read(path); });
  std::ranges::sort(files);
  int64_t all = 0;
  uint32_t checksum = 0;
  for (const fs::path& path : files) {
    const int64_t bytes = file_bytes(path);
    all += bytes;
    checksum = add_samples(path, bytes, crc32c(path.filename().string() + ":" + std::to_string(bytes) + ";", checksum));
  }
  return plural(all, "byte") + ", checksum " + std::to_string(checksum);
}

}  // namespace

std::map<std::string, std::string> model_marks(const engine::Plan& plan) {
  const engine::Manifest keys{.pipeline = engine::keys_to_compare(plan)};
  const RecordedPipeline pipeline(keys);
  std::map<std::string, std::string> marks;
  for (const engine::PlanModel& model : plan.models) {
    for (const char* key : {"checkpoint", "lora.adapter"}) {
      const std::string text = pipeline.text("models." + model.name, key);
      if (text.empty()) continue;
      const std::string what = key == std::string("checkpoint") ? "the files of model '" : "the adapters of model '";
      try {
        marks[what + model.name + "'"] = mark_of(models::model_folder(text));
      } catch (const UserError&) {
        // It is told when it is loaded.
      }
    }
  }
  return marks;
}

}  // namespace sluice::cli
