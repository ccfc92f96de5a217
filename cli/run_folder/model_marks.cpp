#include "cli/run_folder/model_marks.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/folder.h"
#include "base/files/path_kind.h"
#include "cli/run_folder/file_marks.h"
#include "cli/run_folder/recorded_pipeline.h"
#include "engine/plan/pipeline_changes.h"
#include "models/folder/hub_cache.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr std::array<std::string_view, 4> kRead{".safetensors", ".json", ".jinja", ".model"};

bool is_read(const fs::path& path) {
  const std::string extension = path.extension().string();
  return std::ranges::find(kRead, extension) != kRead.end() && is_file(path);
}

std::string mark_of(const fs::path& folder) {
  std::vector<fs::path> files = entries_of(folder);
  std::erase_if(files, [](const fs::path& path) { return !is_read(path); });
  return mark_of_files(std::move(files));
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
