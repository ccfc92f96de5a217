#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "tests/source_folder.h"

namespace sluice {

/// tests/golden/<relative_path>.
inline std::filesystem::path golden_path(const std::string& relative_path) {
  return std::filesystem::path(tests::source_folder()) / "tests" / "golden" / relative_path;
}

/// Compares `actual` with the text of tests/golden/<relative_path>. With SLUICE_UPDATE_GOLDEN=1 in the environment the file is
/// written instead, so that the change can be read as a diff.
inline void expect_golden(const std::string& relative_path, const std::string& actual) {
  const std::filesystem::path file = golden_path(relative_path);
  const char* update = std::getenv("SLUICE_UPDATE_GOLDEN");
  if (update != nullptr && std::string(update) == "1") {
    std::filesystem::create_directories(file.parent_path());
    std::ofstream stream(file, std::ios::binary);
    stream << actual;
    ASSERT_TRUE(stream.good()) << "cannot write " << file;
    return;
  }
  std::ifstream stream(file, std::ios::binary);
  ASSERT_TRUE(stream.good()) << "no golden file " << file << "; make it with SLUICE_UPDATE_GOLDEN=1";
  std::ostringstream expected;
  expected << stream.rdbuf();
  EXPECT_EQ(expected.str(), actual) << "differs from " << file << "; if that is meant, run again with SLUICE_UPDATE_GOLDEN=1";
}

}  // namespace sluice
