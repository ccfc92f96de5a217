#include "cli/pipeline/plugin_rules.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "base/files/file.h"
#include "tests/temporary_folder.h"

namespace sluice::cli::plugin_rules_test {
namespace {

namespace fs = std::filesystem;

/// project/p.toml with plugins in project/build, and a stranger's folder beside the project.
class PluginRules : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directories(project_ / "build");
    fs::create_directories(other_);
    write_file_atomically(project_ / "build/mine.so", "mine");
    write_file_atomically(other_ / "theirs.so", "theirs");
  }

  PluginPlace place(const std::string& text, const PluginArguments& said = {}, const std::string& environment = {}) const {
    return place_of({.text = text, .path = project_ / text, .folder = project_}, said, environment);
  }

  TemporaryFolder folder_;
  fs::path project_ = folder_.path() / "project", other_ = folder_.path() / "other";
};

TEST_F(PluginRules, WhatLiesBelowTheFileIsBesideIt) { EXPECT_EQ(place("build/mine.so"), PluginPlace::kBeside); }

TEST_F(PluginRules, AWayOutWithTwoPointsIsElsewhere) { EXPECT_EQ(place("../other/theirs.so"), PluginPlace::kElsewhere); }

TEST_F(PluginRules, TwoPointsAreElsewhereEvenIfTheyComeBack) {
  EXPECT_EQ(place("../project/build/mine.so"), PluginPlace::kElsewhere);
}

TEST_F(PluginRules, AnAbsolutePathIsElsewhereEvenIfItLiesBeside) {
  EXPECT_EQ(place((project_ / "build/mine.so").string()), PluginPlace::kElsewhere);
}

TEST_F(PluginRules, ALinkOutIsElsewhere) {
  fs::create_symlink(other_ / "theirs.so", project_ / "build/link.so");
  EXPECT_EQ(place("build/link.so"), PluginPlace::kElsewhere);
}

TEST_F(PluginRules, ALinkedFolderIsElsewhere) {
  fs::create_directory_symlink(other_, project_ / "lib");
  EXPECT_EQ(place("lib/theirs.so"), PluginPlace::kElsewhere);
}

TEST_F(PluginRules, ALinkInsideStaysBeside) {
  fs::create_symlink("mine.so", project_ / "build/latest.so");
  EXPECT_EQ(place("build/latest.so"), PluginPlace::kBeside);
}

// A file that the pipeline extends may lie elsewhere, and what it names lies beside it, not beside the file that the user named.
TEST_F(PluginRules, WhatAnExtendedFileElsewhereNamesIsElsewhere) {
  EXPECT_EQ(place_of({.text = "theirs.so", .path = other_ / "theirs.so", .folder = project_}, {}, ""), PluginPlace::kElsewhere);
}

TEST_F(PluginRules, AFolderWhoseNameBeginsAlikeIsElsewhere) {
  fs::create_directory(folder_.path() / "project2");
  write_file_atomically(folder_.path() / "project2/x.so", "x");
  EXPECT_FALSE(lies_in(folder_.path() / "project2/x.so", project_));
}

TEST_F(PluginRules, TheCommandLineVouchesForTheFileItNames) {
  const PluginArguments said{.files = {(other_ / "theirs.so").string()}};
  EXPECT_EQ(place("../other/theirs.so", said), PluginPlace::kSaid);
  EXPECT_EQ(place("build/mine.so", said), PluginPlace::kBeside);
}

TEST_F(PluginRules, PluginsVouchesForAll) { EXPECT_EQ(place("../other/theirs.so", {.all = true}), PluginPlace::kSaid); }

TEST_F(PluginRules, TheEnvironmentVouchesForFilesAndWhatIsInFolders) {
  EXPECT_EQ(place("../other/theirs.so", {}, "/nowhere::" + other_.string()), PluginPlace::kSaid);
  EXPECT_EQ(place("../other/theirs.so", {}, (other_ / "theirs.so").string()), PluginPlace::kSaid);
  EXPECT_EQ(place("../other/theirs.so", {}, project_.string()), PluginPlace::kElsewhere);
}

}  // namespace
}  // namespace sluice::cli::plugin_rules_test
