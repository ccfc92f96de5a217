#include "engine/contract/run_folder.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/confined_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::run_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

TEST(RunFolderNames, NodesMayUseAnyOther) {
  for (const char* name : {"samples.jsonl", "texts/metrics.jsonl", "metrics.jsonl.gz", "locks", "checkpoints.txt"}) {
    EXPECT_EQ(fault_of_run_file(name), "") << name;
  }
}

TEST(RunFolderNames, TheRunsOwnAreTaken) {
  for (const char* name : {"metrics.jsonl", "pipeline.toml", "pipeline.dot", "trace.json", "trace.json.tmp", "status.json",
                           "costs.json", "memory.json", "lock", "checkpoint", "checkpoint.tmp", "checkpoints",
                           "checkpoints/1/manifest.json", "events.out.tfevents.1.host.2"}) {
    EXPECT_THAT(fault_of_run_file(name), HasSubstr("the run itself has a file")) << name;
  }
}

TEST(RunFolderNames, NoneLeadsOutside) {
  for (const char* name : {"", "/tmp/x", "../x", "a/../../x", "."}) EXPECT_NE(fault_of_run_file(name), "") << name;
}

TEST(RunFolderFiles, FoldersOnTheWayAreMade) {
  const TemporaryFolder folder;
  const RunFolder run{.path = folder.path()};
  run.append_to("texts/long/samples.jsonl").write("x");
  EXPECT_EQ(read_file(folder.path() / "texts/long/samples.jsonl"), "x");
}

TEST(RunFolderFiles, ALinkThatLeadsOutIsRefused) {
  const TemporaryFolder folder;
  fs::create_directories(folder.path() / "run");
  fs::create_directories(folder.path() / "elsewhere");
  fs::create_directory_symlink(folder.path() / "elsewhere", folder.path() / "run/texts");
  ConfinedFileSystem files({folder.path() / "run"});
  const RunFolder run{.path = folder.path() / "run", .files = &files};
  EXPECT_THAT(message_of<UserError>([&] { run.append_to("texts/samples.jsonl"); }), HasSubstr("leads out of the folder"));
  EXPECT_TRUE(fs::is_empty(folder.path() / "elsewhere"));
}

}  // namespace
}  // namespace sluice::engine::run_folder_test
