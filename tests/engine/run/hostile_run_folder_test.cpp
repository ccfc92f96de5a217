#include <gmock/gmock.h>

#include "base/error.h"
#include "base/files/file.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "engine/checkpoint/checkpoint_writer.h"
#include "engine/checkpoint/checkpoints_place.h"
#include "engine/observe/trace_cut.h"
#include "engine/run/resume.h"
#include "tests/engine/toy_checkpoint.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

// A run folder is data, perhaps a stranger's: whatever it says, nothing outside of it changes.
namespace sluice::engine::hostile_run_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

class HostileRunFolder : public ::testing::Test {
 protected:
  HostileRunFolder() {
    fs::create_directories(run_);
    fs::create_directories(outside_);
    folder_.write("outside/diary.txt", "a long text of somebody else");
  }
  ~HostileRunFolder() override {
    EXPECT_EQ(read_file(outside_ / "diary.txt"), "a long text of somebody else");
    EXPECT_EQ(std::distance(fs::directory_iterator(outside_), {}), 1) << "something was put outside";
  }

  std::string error_of(const Manifest& manifest) {
    return message_of<UserError>([&] { parse_manifest(manifest_json(manifest), "manifest.json"); });
  }

  const TemporaryFolder folder_;
  const fs::path run_ = folder_.path() / "run", outside_ = folder_.path() / "outside";
  const Plan plan_;
};

TEST_F(HostileRunFolder, AManifestThatNamesFilesElsewhereIsRefused) {
  for (const std::string path : {"../outside/diary.txt", "/etc/passwd", "a/../../outside/diary.txt", "a\nb"}) {
    EXPECT_THAT(error_of({.growing = {{path, 0}}}), HasSubstr("which no run writes")) << path;
    EXPECT_THAT(error_of({.files = {{.path = path}}}), HasSubstr("which no run writes")) << path;
    NodeState state;
    state.files[path] = 0;
    EXPECT_THAT(error_of({.nodes = {{"sink", state}}}), HasSubstr("which no run writes")) << path;
  }
}

TEST_F(HostileRunFolder, AFileThatNoNodeWritesIsNotCut) {
  const Manifest manifest{.growing = {{"metrics.jsonl", 5}, {"events.out.tfevents.1.h.2", 6}, {"notes.txt", 0}}};
  EXPECT_THAT(message_of<UserError>([&] { known_growing_files(manifest, plan_, false, {}); }), HasSubstr("\"notes.txt\""));
  std::vector<std::string> warnings;
  const auto known = known_growing_files(manifest, plan_, true, [&](const std::string& warning) { warnings.push_back(warning); });
  EXPECT_THAT(known, ElementsAre(Pair("events.out.tfevents.1.h.2", 6), Pair("metrics.jsonl", 5)));
  EXPECT_THAT(warnings, ElementsAre(HasSubstr("notes.txt")));
}

TEST_F(HostileRunFolder, AFileThatIsALinkIsNotCut) {
  fs::create_symlink(outside_ / "diary.txt", run_ / "metrics.jsonl");
  fs::create_directories(run_ / "checkpoints/1");
  const Rewind rewind{.folder = {.path = run_},
                      .checkpoints = run_ / "checkpoints",
                      .checkpoint = run_ / "checkpoints/1",
                      .iterations = 1,
                      .growing = {{"metrics.jsonl", 3}}};
  EXPECT_THAT(message_of<UserError>([&] { rewind_folder(rewind, {}); }), HasSubstr("metrics.jsonl is not what a run writes"));
}

// Not by the run: on a disk that was full, or by hand. What is written next begins a line.
TEST_F(HostileRunFolder, AFileThatHasLostItsEndIsCutToWholeLines) {
  fs::create_directories(run_ / "checkpoints/1");
  folder_.write("run/metrics.jsonl", "{\"iteration\":0}\n{\"itera");
  folder_.write("run/samples.jsonl", "{\"prom");
  folder_.write("run/events.out.tfevents.1.h.2", "12345\n67");
  const Rewind rewind{.folder = {.path = run_},
                      .checkpoints = run_ / "checkpoints",
                      .checkpoint = run_ / "checkpoints/1",
                      .iterations = 1,
                      .growing = {{"metrics.jsonl", 100}, {"samples.jsonl", 100}, {"events.out.tfevents.1.h.2", 100}}};
  std::vector<std::string> warnings;
  rewind_folder(rewind, [&](const std::string& warning) { warnings.push_back(warning); });
  EXPECT_THAT(warnings, Each(HasSubstr("has lost its end")));
  EXPECT_EQ(warnings.size(), 3);
  EXPECT_EQ(read_file(run_ / "metrics.jsonl"), "{\"iteration\":0}\n");
  EXPECT_EQ(read_file(run_ / "samples.jsonl"), "");
  EXPECT_EQ(read_file(run_ / "events.out.tfevents.1.h.2"), "12345\n67") << "no lines, and nothing is written after them";
}

TEST_F(HostileRunFolder, CheckpointsThatLeadOutsideAreNotWritten) {
  fs::create_directory_symlink(outside_, run_ / "checkpoints");
  EXPECT_THAT(message_of<UserError>([&] { checkpoints_folder(run_, {}); }), HasSubstr("checkpoints leads out of the run folder"));
  toy::ToyRunFolder run(run_);
  EXPECT_THROW(run.save(1, unsynced_disk()), UserError);
}

TEST_F(HostileRunFolder, ALinkIsFollowedWhereTheUserSaysSo) {
  const fs::path disk = folder_.path() / "disk";
  CheckpointSettings settings{.folder = disk};
  EXPECT_EQ(make_checkpoints_folder(run_, settings, unsynced_disk()), disk / "run");
  EXPECT_EQ(fs::read_symlink(run_ / "checkpoints"), disk / "run");
  EXPECT_EQ(make_checkpoints_folder(run_, settings, unsynced_disk()), disk / "run");
  settings.folder = folder_.path() / "another";
  EXPECT_THAT(message_of<UserError>([&] { checkpoints_folder(run_, settings); }),
              HasSubstr("--set checkpoint.folder=" + disk.string()));
}

TEST_F(HostileRunFolder, OnlyFoldersThatASaveLeavesAreLeftovers) {
  for (const char* name : {"3.tmp", "4.removed", "notes.tmp", "a.removed", "5.old", "6"})
    fs::create_directories(run_ / "checkpoints" / name);
  EXPECT_THAT(leftovers(run_), ElementsAre(run_ / "checkpoints/3.tmp", run_ / "checkpoints/4.removed"));
}

// Anybody may write a trace: lines without end, values of other types, numbers that no clock has.
TEST_F(HostileRunFolder, ATraceOfAnotherShapeIsCutToWhatARunWrites) {
  const std::string good = R"({"name":"a","ph":"X","pid":1,"tid":0,"ts":1.5,"dur":2,"args":{"iteration":0}})";
  std::string text = "[\n" + good + ",\n";
  for (const char* line :
       {R"({"ph":1})", R"({"ph":"X","args":3})", R"({"ph":"X","ts":1,"dur":1,"args":{"iteration":"x"}})", "[[[[", "{", "\xff"}) {
    text += line + std::string(",\n");
  }
  text += std::string(1 << 20, '{') + "\n" + std::string(1 << 20, '[');
  folder_.write("run/trace.json", text);
  EXPECT_EQ(cut_trace(run_ / "trace.json", 1, unsynced_disk()), 3500);
  EXPECT_EQ(read_file(run_ / "trace.json"), "[\n" + good + ",\n");
}

}  // namespace
}  // namespace sluice::engine::hostile_run_folder_test
