#include "base/process/program_path.h"

#include <system_error>

namespace sluice {
namespace fs = std::filesystem;

fs::path program_path() {
  std::error_code error;
  const fs::path path = fs::read_symlink("/proc/self/exe", error);
  return error ? fs::path() : path;
}

fs::path share_folder() {
  const fs::path program = program_path();
  if (program.empty()) return {};
  std::error_code error;
  const fs::path folder = fs::canonical(program.parent_path().parent_path() / "share/sluice", error);
  return error ? fs::path() : folder;
}

}  // namespace sluice
