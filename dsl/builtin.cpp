#include "dsl/builtin.h"

#include <algorithm>
#include <string_view>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/process/program_path.h"
#include "base/text/strings.h"

namespace sluice::dsl {
namespace fs = std::filesystem;
namespace {

constexpr std::string_view kScheme = "builtin:";

// The nearest first, the others in order of name.
Problem unknown_builtin(const std::string& name, const SourceSpan& where, const std::vector<BuiltinPipeline>& pipelines) {
  std::vector<std::string> names;
  for (const BuiltinPipeline& pipeline : pipelines) names.push_back(pipeline.name);
  const std::string near = did_you_mean(name, names);
  std::stable_partition(names.begin(), names.end(), [&](const std::string& other) { return other == near; });
  Problem problem{.kind = "builtin-unknown",
                  .where = where,
                  .message = "no pipeline that comes with the program is called " + sluice::quoted(name),
                  .caret = near.empty() ? "" : "did you mean " + sluice::quoted(std::string(kScheme) + near) + "?",
                  .notes = {},
                  .help = "a file is named by its path; rlhf-run pipelines says what each of those is"};
  if (names.empty()) {
    problem.notes.push_back("there are none: share/sluice/pipelines does not lie beside the folder of the program");
    problem.help = "install the program with cmake --install, or name the file by its path";
  } else {
    problem.notes.push_back("there are: " + join(names, ", "));
  }
  return problem;
}

}  // namespace

std::vector<BuiltinPipeline> builtin_pipelines() {
  const fs::path share = share_folder();
  std::vector<BuiltinPipeline> found;
  if (share.empty() || !is_folder(share / "pipelines")) return found;
  // After a link, so that a build tree names the files that its user edits.
  for (const fs::path& file : entries_of(real_path(share / "pipelines").value_or(share / "pipelines"))) {
    if (file.extension() == ".toml") found.push_back({file.stem().string(), file});
  }
  return found;
}

std::optional<std::string> builtin_name(const std::string& written) {
  if (!written.starts_with(kScheme)) return std::nullopt;
  return written.substr(kScheme.size());
}

std::string builtin_called(const fs::path& file) {
  const std::string name = (file.extension() == ".toml" ? file.stem() : file.filename()).string();
  const std::vector<BuiltinPipeline> pipelines = builtin_pipelines();
  const bool is_one = std::ranges::find(pipelines, name, &BuiltinPipeline::name) != pipelines.end();
  return is_one ? std::string(kScheme) + name : "";
}

std::optional<fs::path> builtin_file(const std::string& name, const SourceSpan& where, Problems& problems) {
  const std::vector<BuiltinPipeline> pipelines = builtin_pipelines();
  const auto found = std::ranges::find(pipelines, name, &BuiltinPipeline::name);
  if (found != pipelines.end()) return found->file;
  problems.push_back(unknown_builtin(name, where, pipelines));
  return std::nullopt;
}

}  // namespace sluice::dsl
