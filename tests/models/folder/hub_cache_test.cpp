#include "models/folder/hub_cache.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "base/error.h"
#include "tests/temporary_folder.h"

namespace sluice::models::hub_cache_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

constexpr const char* kCommit = "7ae557604adf67be50417f59c2c2f167def9a775";
constexpr const char* kOlder = "1111111111111111111111111111111111111111";

// A cache as huggingface_hub lays it out.
class HubCache : public ::testing::Test {
 protected:
  HubCache() {
    for (const char* name : {"HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE", "HF_HOME", "XDG_CACHE_HOME"}) ::unsetenv(name);
    add("models--Qwen--Qwen2.5-0.5B", kCommit);
    add("models--Qwen--Qwen2.5-0.5B", kOlder);
    write(cache_ / "models--Qwen--Qwen2.5-0.5B/refs/main", kCommit);
    write(cache_ / "models--Qwen--Qwen2.5-0.5B/refs/refs/pr/1", kOlder);
  }
  void add(const std::string& model, const std::string& commit) {
    const fs::path snapshot = cache_ / model / "snapshots" / commit;
    fs::create_directories(snapshot);
    write(cache_ / model / "blobs" / ("of" + commit), "{}");
    fs::create_symlink("../../blobs/of" + commit, snapshot / "config.json");
  }

  static void write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text;
  }

  fs::path snapshot(const char* commit) const { return cache_ / "models--Qwen--Qwen2.5-0.5B/snapshots" / commit; }
  std::optional<fs::path> found(const std::string& text) const { return hub_snapshot(hub_model(text).value(), cache_); }

  const TemporaryFolder folder_;
  const fs::path cache_ = folder_.path();
};

TEST_F(HubCache, AnIdIsTheSnapshotOfMain) {
  EXPECT_EQ(found("Qwen/Qwen2.5-0.5B"), snapshot(kCommit));
  EXPECT_TRUE(fs::is_regular_file(*found("Qwen/Qwen2.5-0.5B") / "config.json"));
}

TEST_F(HubCache, ARevisionIsABranchATagOrACommitThatMayBeShortened) {
  EXPECT_EQ(found("Qwen/Qwen2.5-0.5B@main"), snapshot(kCommit));
  EXPECT_EQ(found("Qwen/Qwen2.5-0.5B@refs/pr/1"), snapshot(kOlder));
  EXPECT_EQ(found(std::string("Qwen/Qwen2.5-0.5B@") + kOlder), snapshot(kOlder));
  EXPECT_EQ(found("Qwen/Qwen2.5-0.5B@7ae5576"), snapshot(kCommit));
  EXPECT_EQ(found("Qwen/Qwen2.5-0.5B@7ae557"), std::nullopt);
  EXPECT_EQ(found("Qwen/Qwen2.5-0.5B@v2"), std::nullopt);
}

TEST_F(HubCache, AModelWithoutAnOrganisationHasOneNameLess) {
  add("models--gpt2", kOlder);
  write(cache_ / "models--gpt2/refs/main", kOlder);
  EXPECT_EQ(found("gpt2"), cache_ / "models--gpt2/snapshots" / kOlder);
}

// What lies in the cache came from somebody else.
TEST_F(HubCache, ABranchThatNamesNoCommitLeadsNowhere) {
  for (const char* text : {"../../../../../etc", "", "main", "7ae557604adf67be50417f59c2c2f167def9a775/../x"}) {
    write(cache_ / "models--Qwen--Qwen2.5-0.5B/refs/main", text);
    EXPECT_EQ(found("Qwen/Qwen2.5-0.5B"), std::nullopt) << text;
  }
}

TEST(HubModel, WhatCannotBeAnIdIsNone) {
  for (const char* text :
       {"", "a/b/c", "../b", "a/..", "/a", "a/", "./a", "a b/c", "a/b@", "a/b@../c", "a/b@/c", "models--a/b", "~/a", "-a/b"})
    EXPECT_FALSE(hub_model(text).has_value()) << text;
}

TEST_F(HubCache, TheEnvironmentSaysWhereItIs) {
  ::setenv("HOME", "/home/me", 1);
  EXPECT_EQ(hub_cache(), "/home/me/.cache/huggingface/hub");
  ::setenv("XDG_CACHE_HOME", "/caches", 1);
  EXPECT_EQ(hub_cache(), "/caches/huggingface/hub");
  ::setenv("HF_HOME", "~/hf", 1);
  EXPECT_EQ(hub_cache(), "/home/me/hf/hub");
  ::setenv("HF_HUB_CACHE", "/hub", 1);
  EXPECT_EQ(hub_cache(), "/hub");
}

TEST_F(HubCache, AFolderOfThatNameComesFirst) {
  ::setenv("HF_HUB_CACHE", cache_.c_str(), 1);
  EXPECT_EQ(model_folder("Qwen/Qwen2.5-0.5B", cache_), cache_);
  EXPECT_EQ(model_folder("Qwen/Qwen2.5-0.5B", "/nowhere/Qwen"), snapshot(kCommit));
  EXPECT_EQ(model_folder("no id at all", "/nowhere/no id at all"), "/nowhere/no id at all");
}

TEST_F(HubCache, AFileIsNoModel) {
  const fs::path file = cache_ / "model.safetensors";
  write(file, "weights");
  EXPECT_THAT([&] { model_folder("Qwen/Qwen2.5-0.5B", file); },
              testing::ThrowsMessage<UserError>(HasSubstr(file.string() + " is a file, not the folder of a model")));
}

TEST_F(HubCache, WhatTheCacheDoesNotHaveIsRefusedWithTheCommandThatLoadsIt) {
  ::setenv("HF_HUB_CACHE", cache_.c_str(), 1);
  try {
    model_folder("Qwen/Qwen3-4B@v1", "/p/Qwen/Qwen3-4B@v1");
    FAIL();
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), HasSubstr("there is no folder /p/Qwen/Qwen3-4B@v1, and no such model in Hugging Face's cache"));
    EXPECT_THAT(error.what(), HasSubstr("the cache is " + cache_.string()));
    EXPECT_THAT(error.what(), HasSubstr("hf download Qwen/Qwen3-4B --revision v1"));
  }
}

}  // namespace
}  // namespace sluice::models::hub_cache_test
