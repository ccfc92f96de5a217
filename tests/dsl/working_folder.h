#pragma once

#include <filesystem>
#include <string>

#include "tests/source_folder.h"

namespace sluice {

/// Makes a folder the current one while it lives, so that names in problems do not depend on where the tests run.
class WorkingFolder {
 public:
  explicit WorkingFolder(const std::filesystem::path& folder) : before_(std::filesystem::current_path()) {
    std::filesystem::current_path(folder);
  }
  ~WorkingFolder() { std::filesystem::current_path(before_); }
  WorkingFolder(const WorkingFolder&) = delete;
  WorkingFolder& operator=(const WorkingFolder&) = delete;

 private:
  std::filesystem::path before_;
};

/// tests/golden/dsl
inline std::filesystem::path golden_folder() {
  return std::filesystem::path(tests::source_folder()) / "tests" / "golden" / "dsl";
}

}  // namespace sluice
