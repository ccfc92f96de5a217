#include "base/process/program_path.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/source_folder.h"

namespace sluice::program_path_test {
namespace {

namespace fs = std::filesystem;

TEST(ProgramPath, IsThisTest) { EXPECT_EQ(program_path().filename(), "sluice_base_test"); }

TEST(ProgramPath, ABuildTreeHasWhatComesWithTheProgramAsAnInstallTreeHasIt) {
  EXPECT_TRUE(fs::equivalent(share_folder() / "pipelines", fs::path(tests::source_folder()) / "pipelines"));
  EXPECT_TRUE(fs::equivalent(share_folder() / "python", fs::path(tests::source_folder()) / "python"));
}

}  // namespace
}  // namespace sluice::program_path_test
