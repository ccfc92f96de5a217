#include <gtest/gtest.h>

#include <cerrno>
#include <set>

#include "base/error.h"
#include "engine/checkpoint/checkpoint_folder.h"
#include "tests/engine/toy_checkpoint.h"
#include "tests/files/crash_states.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::checkpoint_crash_test {
namespace {

namespace fs = std::filesystem;
using toy::ToyRunFolder;

std::set<std::string> names_in(const fs::path& folder) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder)) names.insert(entry.path().filename().string());
  return names;
}

// The link is for people and other programs: it may be a step behind, but leads to a whole checkpoint.
bool link_leads_to_a_whole_one(const fs::path& folder) { return !damage_of(folder / "checkpoint"); }

class CheckpointCrash : public ::testing::TestWithParam<CheckpointCopy> {};

// A power cut at any moment of a save, whatever of it had reached the disk: the run folder holds the old checkpoint or the new
// one, and the next save finds nothing in its way.
TEST_P(CheckpointCrash, LeavesTheOldOrTheNewCheckpoint) {
  const TemporaryFolder folder;
  ToyRunFolder run(folder.path() / "run");
  run.save(2, unsynced_disk());
  RecordingFileSystem recorder(run.path(), unsynced_disk());
  run.save(4, recorder, GetParam());
  ASSERT_TRUE(ToyRunFolder::holds(run.path(), 4));
  const fs::path after = folder.path() / "after";
  int old = 0, fresh = 0;
  for (const CrashState& state : crash_states(recorder.recording())) {
    SCOPED_TRACE(state.how);
    materialize(state, after);
    const bool is_old = ToyRunFolder::holds(after, 2), is_new = ToyRunFolder::holds(after, 4);
    ASSERT_TRUE(is_old || is_new);
    EXPECT_TRUE(link_leads_to_a_whole_one(after));
    old += is_old;
    fresh += is_new;
  }
  EXPECT_GT(old, 10);
  EXPECT_GT(fresh, 3);
}

// Once the call has returned, no power cut takes the new checkpoint back.
TEST_P(CheckpointCrash, WhatIsSavedStays) {
  const TemporaryFolder folder;
  ToyRunFolder run(folder.path() / "run");
  run.save(2, unsynced_disk());
  RecordingFileSystem recorder(run.path(), unsynced_disk());
  run.save(4, recorder, GetParam());
  const size_t saved = recorder.size();
  run.save(6, recorder, GetParam());
  const fs::path after = folder.path() / "after";
  for (const CrashState& state : crash_states(recorder.recording(), {.first = saved})) {
    SCOPED_TRACE(state.how);
    materialize(state, after);
    ASSERT_TRUE(ToyRunFolder::holds(after, 4) || ToyRunFolder::holds(after, 6));
  }
}

INSTANTIATE_TEST_SUITE_P(Copies, CheckpointCrash, ::testing::Values(CheckpointCopy::kMemory, CheckpointCopy::kNone),
                         [](const auto& info) { return info.param == CheckpointCopy::kMemory ? "Memory" : "None"; });

struct Refusal {
  const char* name;
  Fault::Kind kind;
  int error;
};

class CheckpointFault : public ::testing::TestWithParam<Refusal> {};

// Whatever operation fails, and in whatever way.
TEST_P(CheckpointFault, AtAnyOperationLeavesEarlierCheckpointsWhole) {
  const TemporaryFolder folder;
  ToyRunFolder counted(folder.path() / "counted");
  counted.save(2, unsynced_disk());
  FaultyFileSystem counter({}, unsynced_disk());
  counted.save(4, counter);
  const int64_t operations = counter.operations();
  ASSERT_GT(operations, 20);
  int refused = 0;
  for (int64_t at = 0; at < operations; ++at) {
    SCOPED_TRACE(at);
    const fs::path path = folder.path() / std::to_string(at);
    ToyRunFolder run(path);
    run.save(2, unsynced_disk());
    FaultyFileSystem faulty({.kind = GetParam().kind, .at = at, .error = GetParam().error}, unsynced_disk());
    try {
      run.save(4, faulty, at % 2 == 0 ? CheckpointCopy::kMemory : CheckpointCopy::kNone);
      ASSERT_TRUE(ToyRunFolder::holds(path, 4));
    } catch (const UserError& error) {
      ++refused;
      EXPECT_NE(std::string(error.what()).find(path.string()), std::string::npos) << error.what();
      ASSERT_TRUE(ToyRunFolder::holds(path, 2) || ToyRunFolder::holds(path, 4));
    }
    run.save(6, unsynced_disk());
    EXPECT_TRUE(ToyRunFolder::holds(path, 6));
    EXPECT_EQ(names_in(path / "checkpoints"), std::set<std::string>({"6"}));
    EXPECT_TRUE(link_leads_to_a_whole_one(path));
    fs::remove_all(path);
  }
  if (GetParam().error != EINTR && GetParam().kind != Fault::Kind::kShortWrite)
    EXPECT_GT(refused, 10);
  else
    EXPECT_EQ(refused, 0) << "what a signal interrupts is done again";
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, CheckpointFault,
    ::testing::Values(Refusal{"FullOnce", Fault::Kind::kFails, ENOSPC}, Refusal{"Full", Fault::Kind::kDiskIsFull, ENOSPC},
                      Refusal{"BadOnce", Fault::Kind::kFails, EIO}, Refusal{"Gone", Fault::Kind::kFailsForGood, EIO},
                      Refusal{"Interrupted", Fault::Kind::kFails, EINTR}, Refusal{"Short", Fault::Kind::kShortWrite, 0}),
    [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace sluice::engine::checkpoint_crash_test
