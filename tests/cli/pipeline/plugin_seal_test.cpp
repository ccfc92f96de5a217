#include "cli/pipeline/plugin_seal.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

#include "base/files/file.h"
#include "tests/temporary_folder.h"

namespace sluice::cli::plugin_seal_test {
namespace {

namespace fs = std::filesystem;

class PluginSeal : public ::testing::Test {
 protected:
  void SetUp() override {
    fs::create_directory(run_);
    write_file_atomically(plugin_, "a library");
  }

  bool sealed() const { return is_sealed(run_, plugin_); }

  TemporaryFolder folder_;
  fs::path run_ = folder_.path() / "run", plugin_ = folder_.path() / "mine.so";
};

TEST_F(PluginSeal, ARunGoesOnWithThePluginThatItHasLoaded) {
  seal_plugins(run_, {plugin_.string()});
  EXPECT_TRUE(sealed());
}

TEST_F(PluginSeal, AFolderWithoutSealsVouchesForNothing) { EXPECT_FALSE(sealed()); }

TEST_F(PluginSeal, AnotherPluginIsNotVouchedFor) {
  write_file_atomically(folder_.path() / "other.so", "a library");
  seal_plugins(run_, {(folder_.path() / "other.so").string()});
  EXPECT_FALSE(sealed());
}

// As it is after a stranger has guessed everything but what only this machine knows: a copy has the same name, size and content.
TEST_F(PluginSeal, ACopyInThePlaceOfTheFileIsNotVouchedFor) {
  seal_plugins(run_, {plugin_.string()});
  write_file_atomically(plugin_, "a library");
  EXPECT_FALSE(sealed());
}

TEST_F(PluginSeal, AFileThatWasWrittenAgainIsNotVouchedFor) {
  seal_plugins(run_, {plugin_.string()});
  OutputFile(plugin_).write("A library");
  EXPECT_FALSE(sealed());
}

TEST_F(PluginSeal, WhatIsNotWhatARunWritesVouchesForNothing) {
  const std::string half = "[{\"path\": \"" + plugin_.string() + "\"}]";
  for (const std::string& text : std::vector<std::string>{"", "{}", "[1]", "[[]]", "null", half}) {
    write_file_atomically(run_ / "plugins.json", text);
    EXPECT_FALSE(sealed()) << text;
  }
}

TEST_F(PluginSeal, ARunWithoutPluginsLeavesNoSeals) {
  seal_plugins(run_, {plugin_.string()});
  seal_plugins(run_, {});
  EXPECT_FALSE(fs::exists(run_ / "plugins.json"));
}

}  // namespace
}  // namespace sluice::cli::plugin_seal_test
