#include "cli/run_folder/input_marks.h"

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/json/json.h"
#include "cli/run_folder/file_marks.h"
#include "cli/run_folder/model_marks.h"
#include "cli/run_folder/noted_value.h"
#include "cli/run_folder/recorded_pipeline.h"
#include "data/source_files.h"
#include "engine/contract/run_folder.h"
#include "engine/plan/pipeline_changes.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

// Of a node: whether its text, or texts, name files.
bool names_files(const std::string& key) {
  constexpr std::array<std::string_view, 4> kKeys{"path", "file", "schema", "tools"};
  return std::ranges::find(kKeys, key) != kKeys.end();
}

// As a source of rows reads them; of other nodes a key names one file.
std::vector<fs::path> files_of(const fs::path& path) {
  if (is_file(path)) return {path};
  return data::source_files({path});
}

// `home`: the run folder, as an absolute path; what lies there the run writes itself. Empty: nothing does.
void add_files(const std::string& what, const Json& value, const fs::path& home, Marks& marks) {
  if (!value.is_string()) return;
  const fs::path path = value.get<std::string>();
  if (!path.is_absolute() || (!home.empty() && !path.lexically_relative(home).native().starts_with(".."))) return;
  std::string& mark = marks[what + " (" + path.string() + ")"];
  try {
    mark = mark_of_files(files_of(path));
  } catch (const UserError&) {
    // Whoever reads it tells of that.
  }
}

Marks marks_of(const engine::Plan& plan, const fs::path& run_folder) {
  Marks marks = model_marks(plan);
  const fs::path home = absolute_path(run_folder).lexically_normal();
  for (const engine::PlanNode& node : plan.nodes) marks.merge(marks_of_files(plan, node, home));
  std::erase_if(marks, [](const auto& mark) { return mark.second.empty(); });
  return marks;
}

}  // namespace

Marks marks_of_files(const engine::Plan& plan, const engine::PlanNode& node, const fs::path& home) {
  const engine::Manifest keys{.pipeline = engine::keys_to_compare(plan)};
  const RecordedPipeline pipeline(keys);
  Marks marks;
  for (const engine::EffectiveKey& key : keys.pipeline) {
    if (key.table != "nodes." + node.name || key.harmless || !names_files(key.key)) continue;
    const std::string what = key.key + " of [" + key.table + "]";
    const Json value = pipeline.value(key.table, key.key);
    if (value.is_array())
      for (const Json& one : value) add_files(what, one, home, marks);
    else
      add_files(what, value, home, marks);
  }
  return marks;
}

void note_inputs(const fs::path& run_folder, const engine::Plan& plan) {
  note_value(run_folder, engine::kInputsFile, marks_of(plan, run_folder));
}

void refuse_changed_inputs(const fs::path& run_folder, const engine::Plan& plan) {
  const Marks noted = noted_value<Marks>(run_folder, engine::kInputsFile);
  std::vector<std::string> changed;
  for (const auto& [what, mark] : marks_of(plan, run_folder)) {
    const auto found = noted.find(what);
    if (found != noted.end() && found->second != mark) changed.push_back(what + ": " + found->second + ", and now " + mark);
  }
  if (changed.empty()) return;
  throw UserError({.where = {},
                   .message = "what this run reads is not what it was: a run that goes on would be another one",
                   .caret = {},
                   .notes = changed,
                   .help = "bring the files back, or go on all the same with --accept-changes"});
}

}  // namespace sluice::cli
