#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

/// One fuzz target a program: whatever the bytes are, it returns 0, and only a UserError may end what it calls. Anything else
/// (another exception, a signal, a sanitizer's report) is a finding. libFuzzer calls it (preset `fuzz`), and so does driver.cpp
/// (all others).
extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);

namespace sluice::fuzz {

inline std::string_view text_of(const uint8_t* data, size_t size) { return {reinterpret_cast<const char*>(data), size}; }

/// A folder in memory (or else on the disk) for targets that read files by name; removed when the program ends.
class InputFolder {
 public:
  InputFolder();
  ~InputFolder();
  InputFolder(const InputFolder&) = delete;
  InputFolder& operator=(const InputFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }

  /// Writes or replaces a file of the folder and returns its path.
  std::filesystem::path write(const std::string& name, std::string_view content) const;

 private:
  std::filesystem::path path_;
};

}  // namespace sluice::fuzz
