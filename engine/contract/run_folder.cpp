#include "engine/contract/run_folder.h"

#include <algorithm>
#include <array>
#include <memory>

#include "base/files/folder.h"
#include "base/files/inner_path.h"
#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr std::array kOwnNames = {kPipelineFile, kPipelineGraphFile, kMetricsFile,          kTraceFile,
                                  kStatusFile,   kCostsFile,         kMemoryFile,           kPluginsFile,
                                  kLockFile,     kCheckpointsFolder, kNewestCheckpointLink, kAcceptedChangesFile,
                                  kInputsFile};
constexpr std::array kEndings = {"", ".tmp", ".old", ".removed"};  // of what is being written, replaced and removed

bool is_own_name(std::string_view name) {
  if (name.starts_with(kEventFilePrefix)) return true;
  return std::ranges::any_of(kOwnNames, [&](const char* own) {
    return std::ranges::any_of(kEndings, [&](const char* ending) { return name == std::string(own) + ending; });
  });
}

}  // namespace

std::string fault_of_run_file(std::string_view path) {
  if (std::string fault = fault_of_inner_path(path); !fault.empty()) return fault;
  const std::string_view first = path.substr(0, path.find('/'));
  return is_own_name(first) ? "the run itself has a file " + sluice::quoted(first) : "";
}

GatheredFile RunFolder::append_to(const std::string& name) const {
  auto content = std::make_shared<GatheredFile::Content>();
  if (is_ours) {
    const std::filesystem::path file = path / name;
    make_folders(file.parent_path(), *files);
    content->file.emplace(file, OutputFile::Mode::kAppend, *files);
  }
  return gathered != nullptr ? gathered->add(name, content) : GatheredFile(content);
}

}  // namespace sluice::engine
