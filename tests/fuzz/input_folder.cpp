#include <unistd.h>

#include <fstream>
#include <system_error>

#include "tests/fuzz/target.h"

namespace sluice::fuzz {
namespace fs = std::filesystem;

InputFolder::InputFolder() {
  const fs::path memory = "/dev/shm";
  const fs::path parent = fs::is_directory(memory) ? memory : fs::temp_directory_path();
  path_ = parent / ("sluice-fuzz-" + std::to_string(::getpid()));
  fs::create_directories(path_);
}

InputFolder::~InputFolder() {
  std::error_code ignored;
  fs::remove_all(path_, ignored);
}

fs::path InputFolder::write(const std::string& name, std::string_view content) const {
  std::ofstream(path_ / name, std::ios::binary) << content;
  return path_ / name;
}

}  // namespace sluice::fuzz
