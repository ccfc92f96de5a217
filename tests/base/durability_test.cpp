// What base/ writes: whole or not at all, whatever fails and whenever the power goes.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <functional>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "tests/files/crash_states.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::durability_test {
namespace {

namespace fs = std::filesystem;
using testing::AnyOf;
using testing::HasSubstr;

// Something that changes a folder from an old to a new state.
struct Change {
  std::string name;
  std::function<void(const fs::path&)> set_up;
  std::function<void(const fs::path&, FileSystem&)> make;

  // "old", "new", or what it is instead. Looks only at what a reader would look at.
  std::function<std::string(const fs::path&)> read;

  std::vector<std::string> names_after;  // what is in the folder when nothing is left over
  bool exchanges = true;                 // the file system can
};

void PrintTo(const Change& change, std::ostream* to) { *to << change.name; }

std::string bytes_at(const fs::path& path) { return fs::is_regular_file(path) ? read_file(path) : "(none)"; }

void put(const fs::path& path, const std::string& bytes) { std::ofstream(path, std::ios::binary) << bytes; }

std::string either(const std::string& found, const std::string& old, const std::string& changed) {
  return found == old ? "old" : found == changed ? "new" : "neither old nor new: " + found;
}

const std::string kOld = "old content", kNew = "new content, which is longer";

void make_old_folder(const fs::path& folder) {
  fs::create_directories(folder / "inner");
  put(folder / "a", "old a");
  put(folder / "inner/b", "old b");
}

void write_new_folder(const fs::path& folder, FileSystem& files) {
  remove_tree(folder, files);
  make_folders(folder / "inner", files);
  for (const char* name : {"a", "inner/b"}) {
    OutputFile file(folder / name, OutputFile::Mode::kTruncate, files);
    file.write("new ");
    file.write(name);
    file.close();
  }
  sync_folder(folder / "inner", files);
  sync_folder(folder, files);
}

std::string read_folder(const fs::path& folder) {
  if (!fs::exists(folder)) return "(none)";
  return std::to_string(content_of(folder).entries.size()) + " " + bytes_at(folder / "a") + ", " + bytes_at(folder / "inner/b");
}

const std::string kOldFolder = "3 old a, old b", kNewFolder = "3 new a, new inner/b";

std::vector<Change> changes() {
  const auto write_atomically = [](const fs::path& folder, FileSystem& files) {
    write_file_atomically(folder / "a", kNew, files);
  };
  const auto replace_folder = [](const fs::path& folder, FileSystem& files) {
    write_new_folder(folder / "target.tmp", files);
    replace_path(folder / "target.tmp", folder / "target", files);
  };
  std::vector<Change> all;
  all.push_back({.name = "FileIsReplaced",
                 .set_up = [](const fs::path& folder) { put(folder / "a", kOld); },
                 .make = write_atomically,
                 .read = [](const fs::path& folder) { return either(bytes_at(folder / "a"), kOld, kNew); },
                 .names_after = {"a"}});
  all.push_back({.name = "FileIsMade",
                 .set_up = [](const fs::path&) {},
                 .make = write_atomically,
                 .read = [](const fs::path& folder) { return either(bytes_at(folder / "a"), "(none)", kNew); },
                 .names_after = {"a"}});
  all.push_back({.name = "FileTakesThePlaceOfAnother",
                 .set_up = [](const fs::path& folder) { put(folder / "a", kOld); },
                 .make =
                     [](const fs::path& folder, FileSystem& files) {
                       OutputFile file(folder / "b", OutputFile::Mode::kTruncate, files);
                       file.write(kNew);
                       file.close();
                       replace_path(folder / "b", folder / "a", files);
                     },
                 .read = [](const fs::path& folder) { return either(bytes_at(folder / "a"), kOld, kNew); },
                 .names_after = {"a"}});
  all.push_back({.name = "FolderTakesThePlaceOfAnother",
                 .set_up = [](const fs::path& folder) { make_old_folder(folder / "target"); },
                 .make = replace_folder,
                 .read = [](const fs::path& folder) { return either(read_folder(folder / "target"), kOldFolder, kNewFolder); },
                 .names_after = {"target"}});
  all.push_back({.name = "FolderTakesThePlaceOfAnotherWithoutExchange",
                 .set_up = [](const fs::path& folder) { make_old_folder(folder / "target"); },
                 .make = replace_folder,
                 .read =
                     [](const fs::path& folder) {  // between two renames the old one is beside its place
                       const bool is_aside = !fs::exists(folder / "target");
                       return either(read_folder(folder / (is_aside ? "target.old" : "target")), kOldFolder, kNewFolder);
                     },
                 .names_after = {"target"},
                 .exchanges = false});
  all.push_back({.name = "FolderIsPutWhereNothingWas",
                 .set_up = [](const fs::path&) {},
                 .make = replace_folder,
                 .read = [](const fs::path& folder) { return either(read_folder(folder / "target"), "(none)", kNewFolder); },
                 .names_after = {"target"}});
  all.push_back({.name = "LinkIsReplaced",
                 .set_up = [](const fs::path& folder) { fs::create_symlink("old", folder / "link"); },
                 .make = [](const fs::path& folder, FileSystem& files) { replace_link("new", folder / "link", files); },
                 .read = [](const fs::path& folder) { return either(fs::read_symlink(folder / "link"), "old", "new"); },
                 .names_after = {"link"}});
  all.push_back({.name = "LinkIsMade",
                 .set_up = [](const fs::path&) {},
                 .make = [](const fs::path& folder, FileSystem& files) { replace_link("new", folder / "link", files); },
                 .read =
                     [](const fs::path& folder) {
                       return !fs::is_symlink(folder / "link") ? "old" : either(fs::read_symlink(folder / "link"), "", "new");
                     },
                 .names_after = {"link"}});
  all.push_back({.name = "FolderIsRemoved",
                 .set_up = [](const fs::path& folder) { make_old_folder(folder / "target"); },
                 .make = [](const fs::path& folder, FileSystem& files) { remove_whole(folder / "target", files); },
                 .read = [](const fs::path& folder) { return either(read_folder(folder / "target"), kOldFolder, "(none)"); },
                 .names_after = {}});
  all.push_back({.name = "FileIsCut",
                 .set_up = [](const fs::path& folder) { put(folder / "a", kOld); },
                 .make = [](const fs::path& folder, FileSystem& files) { cut_file(folder / "a", 3, files); },
                 .read = [](const fs::path& folder) { return either(bytes_at(folder / "a"), kOld, "old"); },
                 .names_after = {"a"}});
  all.push_back({.name = "FoldersAreMade",
                 .set_up = [](const fs::path&) {},
                 .make = [](const fs::path& folder, FileSystem& files) { make_folders(folder / "a/b/c", files); },
                 .read = [](const fs::path& folder) { return std::string(fs::exists(folder / "a/b/c") ? "new" : "old"); },
                 .names_after = {"a"}});
  return all;
}

std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) names.push_back(entry.path().filename().string());
  std::ranges::sort(names);
  return names;
}

class Durability : public testing::TestWithParam<Change> {
 protected:
  void set_up(const fs::path& folder) const {
    fs::remove_all(folder);
    fs::create_directories(folder);
    GetParam().set_up(folder);
  }

  FileSystem& files() { return GetParam().exchanges ? unsynced_disk() : without_exchange_; }

  // What went wrong before does not stand in the way.
  void expect_to_work_now(const fs::path& folder, const std::string& after) const {
    if (GetParam().name == "FileIsCut" && GetParam().read(folder) == "new") return;
    GetParam().make(folder, unsynced_disk());
    EXPECT_EQ(GetParam().read(folder), "new") << "when it is made after " << after;
    EXPECT_EQ(names_in(folder), GetParam().names_after) << "when it is made after " << after;
  }

  TemporaryFolder folder_;
  FileSystemWithoutExchange without_exchange_{unsynced_disk()};
};

TEST_P(Durability, EveryPowerCutLeavesTheOldOrTheNewAndTheNewOnceItReturned) {
  set_up(folder_.path() / "run");
  RecordingFileSystem recorder(folder_.path() / "run", files());
  GetParam().make(folder_.path() / "run", recorder);
  const auto states = crash_states(recorder.recording(), {.most = 100000});  // all
  EXPECT_GT(states.size(), 1u);
  for (const CrashState& state : states) {
    const fs::path folder = folder_.path() / "after";
    materialize(state, folder);
    const std::string found = GetParam().read(folder);
    const bool is_done = state.operations == recorder.size();
    ASSERT_THAT(found, AnyOf("new", is_done ? "new" : "old")) << state.how;
    expect_to_work_now(folder, state.how);
  }
}

TEST_P(Durability, EveryFailureLeavesTheOldOrTheNewAndNothingInTheWay) {
  using enum Fault::Kind;
  const std::vector<std::pair<std::string, Fault>> faults = {
      {"ENOSPC", {kFails, 0, ENOSPC}},         {"EIO", {kFails, 0, EIO}},
      {"EINTR", {kFails, 0, EINTR}},           {"short write", {kShortWrite, 0, 0}},
      {"full disk", {kDiskIsFull, 0, ENOSPC}}, {"disk gone", {kFailsForGood, 0, EIO}}};
  const fs::path folder = folder_.path() / "run";
  for (auto [what, fault] : faults) {
    for (bool reached = true; reached; ++fault.at) {
      const std::string place = what + " at operation " + std::to_string(fault.at);
      set_up(folder);
      RecordingFileSystem recorder(folder, files());
      FaultyFileSystem faulty(fault, recorder);
      std::string error;
      try {
        GetParam().make(folder, faulty);
      } catch (const UserError& failure) {
        error = failure.what();
      }
      reached = faulty.operations() > fault.at;
      const std::string found = GetParam().read(folder);
      if (fault.error == EINTR || fault.kind == kShortWrite) {
        EXPECT_EQ(error, "") << place;
        EXPECT_EQ(names_in(folder), GetParam().names_after) << place;
      }
      if (error.empty()) {
        EXPECT_EQ(found, "new") << place;
      } else {
        EXPECT_THAT(error, HasSubstr(folder.string())) << place;
        EXPECT_THAT(found, AnyOf("old", "new")) << place;
        EXPECT_TRUE(faulty.struck());
      }
      expect_to_work_now(folder, place);
    }
    EXPECT_GT(fault.at, 3) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(Of, Durability, testing::ValuesIn(changes()), [](const auto& test) { return test.param.name; });

// What is being appended may be there in part; what was there before stays.
TEST(DurabilityOfAppending, APowerCutTakesNothingThatWasThereBeforeNorWhatWasSynced) {
  const TemporaryFolder folder;
  const fs::path path = folder.write("a", "old\n");
  RecordingFileSystem recorder(folder.path(), unsynced_disk());
  OutputFile file(path, OutputFile::Mode::kAppend, recorder);
  file.write("first\n");
  file.sync();
  const size_t synced = recorder.size();
  file.write("second\n");
  file.close();
  for (const CrashState& state : crash_states(recorder.recording())) {
    const std::string& bytes = *state.entries.at("a").bytes;
    EXPECT_TRUE(bytes.starts_with(state.operations < synced ? "old\n" : "old\nfirst\n")) << state.how;
    if (state.operations == recorder.size()) {
      EXPECT_EQ(bytes, "old\nfirst\nsecond\n") << state.how;
    }
  }
}

TEST(DurabilityOfAppending, AFailureKeepsWhatWasThereBeforeAndNamesTheFile) {
  const TemporaryFolder folder;
  using enum Fault::Kind;
  for (const Fault::Kind kind : {kFails, kFailsForGood, kDiskIsFull, kShortWrite}) {
    for (int64_t at = 0; at < 4; ++at) {
      const fs::path path = folder.write("a", "old\n");
      FaultyFileSystem faulty({kind, at, ENOSPC});
      const auto append = [&] {
        OutputFile file(path, OutputFile::Mode::kAppend, faulty);
        file.write("new\n");
        EXPECT_EQ(file.size(), 8);
        file.close();
      };
      if (kind == kShortWrite) {
        append();
        EXPECT_EQ(read_file(path), "old\nnew\n");
      } else if (kind != kDiskIsFull || at < 3) {  // closing needs no space
        EXPECT_THAT(message_of<UserError>(append), HasSubstr("cannot write " + path.string())) << at;
        EXPECT_TRUE(read_file(path).starts_with("old\n"));
      }
    }
  }
}

// When it fails before the new name is given, the old content is there; and nothing beside it.
TEST(DurabilityOfReplacing, AFailureBeforeTheRenameKeepsTheOldContentAndLeavesNothing) {
  const TemporaryFolder folder;
  for (int64_t at = 0; at < 5; ++at) {  // open, write, sync, close, rename
    const fs::path path = folder.write("a", "old");
    for (const Fault::Kind kind : {Fault::Kind::kFails, Fault::Kind::kDiskIsFull}) {
      if (kind == Fault::Kind::kDiskIsFull && at == 3) continue;  // then it is the rename that fails
      FaultyFileSystem faulty({kind, at, ENOSPC}, unsynced_disk());
      EXPECT_THAT(message_of<UserError>([&] { write_file_atomically(path, "new", faulty); }),
                  HasSubstr("No space left on device"));
      EXPECT_EQ(read_file(path), "old") << at;
      EXPECT_EQ(names_in(folder.path()), std::vector<std::string>{"a"}) << at;
    }
  }
}

// A folder that has taken the place of another goes back when the other cannot be moved out of the way.
TEST(DurabilityOfReplacing, AFailureBetweenTheTwoStepsOfAFolderIsUndone) {
  class WithoutRename final : public ForwardingFileSystem {
    int rename(const fs::path&, const fs::path&) override {
      errno = ENOSPC;
      return -1;
    }
  };
  const TemporaryFolder folder;
  make_old_folder(folder.path() / "target");
  write_new_folder(folder.path() / "new", unsynced_disk());
  WithoutRename files;
  EXPECT_THAT(message_of<UserError>([&] { replace_path(folder.path() / "new", folder.path() / "target", files); }),
              HasSubstr("target.old: No space left on device"));
  EXPECT_EQ(read_folder(folder.path() / "target"), kOldFolder);
  EXPECT_EQ(read_folder(folder.path() / "new"), kNewFolder);
}

}  // namespace
}  // namespace sluice::durability_test
