#include "tests/files/crash_states.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>
#include <set>

#include "base/files/file.h"
#include "base/files/folder.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::crash_states_test {
namespace {

namespace fs = std::filesystem;
using testing::Contains;
using testing::Not;
using testing::UnorderedElementsAre;

std::string text_of(const CrashState& state) {
  std::string text;
  for (const auto& [path, entry] : state.entries) {
    text += (text.empty() ? "" : " ") + path.string();
    if (entry.kind == FolderContent::Kind::kFile) text += "=" + *entry.bytes;
    if (entry.kind == FolderContent::Kind::kLink) text += "->" + *entry.bytes;
  }
  return text;
}

class CrashStates : public testing::Test {
 protected:
  fs::path at(const std::string& name) const { return folder_.path() / name; }

  // What a power cut may leave of what `action` does in the folder.
  std::multiset<std::string> states_of(const auto& action, const CrashOptions& options = {}) {
    RecordingFileSystem files(folder_.path(), unsynced_disk());
    action(files);
    std::multiset<std::string> texts;
    for (const CrashState& state : crash_states(files.recording(), options)) texts.insert(text_of(state));
    return texts;
  }

  // Likewise, but only when all that it does is done.
  std::multiset<std::string> states_after(const auto& action) {
    RecordingFileSystem files(folder_.path(), unsynced_disk());
    action(files);
    std::multiset<std::string> texts;
    for (const CrashState& state : crash_states(files.recording(), {.first = files.size()})) texts.insert(text_of(state));
    return texts;
  }

  void write(const std::string& name, const std::string& bytes, FileSystem& files) const {
    OutputFile(at(name), OutputFile::Mode::kTruncate, files).write(bytes);
  }

  TemporaryFolder folder_;
};

TEST_F(CrashStates, OfANewFileAreItsNameAndItsBytesEachThereOrNotOrInPart) {
  const auto states = states_of([&](FileSystem& files) { write("a", "xy", files); });
  EXPECT_THAT(states, UnorderedElementsAre("", "a=", "a=x", "a=xy", std::string("a=\0\0", 4), std::string("a=\0y", 4)));
}

TEST_F(CrashStates, OfASyncedFileHaveAllItsBytesButNotForSureItsName) {
  const auto states = states_after([&](FileSystem& files) {
    OutputFile file(at("a"), OutputFile::Mode::kTruncate, files);
    file.write("xy");
    file.close();
  });
  EXPECT_THAT(states, UnorderedElementsAre("", "a=xy"));
}

TEST_F(CrashStates, AfterASyncOfItAllAreOne) {
  const auto states = states_after([&](FileSystem& files) {
    write("a", "xy", files);
    sync_file(at("a"), files);
  });
  EXPECT_THAT(states, UnorderedElementsAre("a=xy"));
}

TEST_F(CrashStates, KeepTheOrderOfNamesInOneFolderOnly) {
  fs::create_directories(at("f"));
  fs::create_directories(at("g"));
  const auto in_one = states_after([&](FileSystem& files) { write("f/a", "", files), write("f/b", "", files); });
  EXPECT_THAT(in_one, UnorderedElementsAre("f g", "f f/a= g", "f f/a= f/b= g"));
  fs::remove_all(at("f"));
  fs::create_directories(at("f"));
  const auto in_two = states_after([&](FileSystem& files) { write("f/a", "", files), write("g/b", "", files); });
  EXPECT_THAT(in_two, UnorderedElementsAre("f g", "f f/a= g", "f g g/b=", "f f/a= g g/b="));
}

TEST_F(CrashStates, OfARenameHaveTheFileUnderOneNameAlsoBetweenFolders) {
  fs::create_directories(at("f"));
  folder_.write("a", "x");
  const auto states = states_after([&](FileSystem& files) { files.rename(at("a"), at("f/b")); });
  EXPECT_THAT(states, UnorderedElementsAre("a=x f", "f f/b=x"));
}

TEST_F(CrashStates, OfAnExchangeHaveBothInEitherPlace) {
  fs::create_directories(at("f"));
  folder_.write("f/a", "x");
  fs::create_directories(at("g"));
  const auto states = states_after([&](FileSystem& files) { files.exchange(at("f"), at("g")); });
  EXPECT_THAT(states, UnorderedElementsAre("f f/a=x g", "f g g/a=x"));
}

TEST_F(CrashStates, OfALinkHaveItsTargetWithItsName) {
  const auto states = states_after([&](FileSystem& files) { files.make_link("there", at("link")); });
  EXPECT_THAT(states, UnorderedElementsAre("", "link->there"));
}

TEST_F(CrashStates, OfAFolderThatWasSyncedHaveItsNamesOnlyWhereItHasOne) {
  const auto states = states_after([&](FileSystem& files) {
    files.make_folder(at("f"));
    write("f/a", "", files);
    sync_folder(at("f"), files);
  });
  EXPECT_THAT(states, UnorderedElementsAre("", "f f/a="));
}

TEST_F(CrashStates, OfAppendingKeepWhatWasThere) {
  folder_.write("a", "old");
  const auto states = states_of([&](FileSystem& files) { OutputFile(at("a"), OutputFile::Mode::kAppend, files).write("ab"); });
  EXPECT_THAT(states,
              UnorderedElementsAre("a=old", "a=olda", "a=oldab", std::string("a=old\0\0", 7), std::string("a=old\0b", 7)));
}

TEST_F(CrashStates, SayHowMuchWasDoneAtMost) {
  folder_.write("a", "old");
  RecordingFileSystem files(folder_.path(), unsynced_disk());
  write_file_atomically(at("a"), "new", files);
  for (const CrashState& state : crash_states(files.recording())) {
    const bool is_new = *state.entries.at("a").bytes == "new";
    EXPECT_EQ(state.operations == files.size(), is_new && state.entries.size() == 1) << state.how << " gives " << text_of(state);
  }
}

// The ways to lose a file that its writer forgot to guard against are all found.

TEST_F(CrashStates, FindAReplacementWithoutASyncOfTheFile) {
  folder_.write("a", "old");
  const auto states = states_of([&](FileSystem& files) { replace_file(at("a"), "new", files); });
  EXPECT_THAT(states, Contains("a="));
  EXPECT_THAT(states, Contains(std::string("a=\0\0\0", 5)));
}

TEST_F(CrashStates, FindAReplacementWithoutASyncOfTheFolder) {
  folder_.write("a", "old");
  const auto action = [&](FileSystem& files) {
    OutputFile file(at("a.tmp"), OutputFile::Mode::kTruncate, files);
    file.write("new");
    file.close();
    files.rename(at("a.tmp"), at("a"));
  };
  EXPECT_THAT(states_after(action), UnorderedElementsAre("a=old", "a=old a.tmp=new", "a=new"));
}

TEST_F(CrashStates, FindAReplacementInPlace) {
  folder_.write("a", "old");
  EXPECT_THAT(states_of([&](FileSystem& files) { write("a", "new", files), sync_file(at("a"), files); }), Contains("a="));
}

TEST_F(CrashStates, FindARemovalThatDoesNotWaitForItsRename) {
  fs::create_directories(at("f"));
  folder_.write("f/a", "1");
  folder_.write("f/b", "2");
  const auto states = states_of([&](FileSystem& files) {
    files.rename(at("f"), at("f.removed"));
    remove_tree(at("f.removed"), files);
  });
  EXPECT_THAT(states, testing::AnyOf(Contains("f f/a=1"), Contains("f f/b=2")));
}

TEST_F(CrashStates, AreDrawnWhereTheyAreTooManyWithTheExtremesAmongThem) {
  const auto make_all = [&](FileSystem& files) {
    for (int i = 0; i < 12; ++i) {
      const std::string folder = "f" + std::to_string(i);
      make_folders(at(folder), files);
      write(folder + "/a", "xy", files);
    }
  };
  RecordingFileSystem files(folder_.path(), unsynced_disk());
  make_all(files);
  const auto states = crash_states(files.recording(), {.most = 64, .first = files.size()});  // of 6^12
  EXPECT_LT(states.size(), 1000u);
  std::set<std::string> texts;
  for (const CrashState& state : states) texts.insert(text_of(state));
  EXPECT_EQ(texts.size(), states.size());
  std::string none, all, no_bytes, lost_one;
  for (const auto& [path, entry] : content_of(folder_.path()).entries) {
    const bool is_file = entry.kind == FolderContent::Kind::kFile;
    const std::string separator = all.empty() ? "" : " ";
    if (!is_file) none += separator + path.string();
    all += separator + path.string() + (is_file ? "=xy" : "");
    no_bytes += separator + path.string() + (is_file ? "=" : "");
    lost_one += separator + path.string() + (is_file ? path == "f7/a" ? "=" : "=xy" : "");
  }
  for (const std::string& extreme : {none, all, no_bytes, lost_one}) EXPECT_THAT(texts, Contains(extreme));
}

TEST_F(CrashStates, AreTheSameForTheSameSeed) {
  const auto write_some = [&](FileSystem& files) {
    for (int i = 0; i < 8; ++i) write("a" + std::to_string(i), "xyz", files);
  };
  const auto first = states_of(write_some, {.most = 16, .seed = 7});
  for (int i = 0; i < 8; ++i) fs::remove(at("a" + std::to_string(i)));
  EXPECT_EQ(states_of(write_some, {.most = 16, .seed = 7}), first);
}

TEST_F(CrashStates, AreLaidOutInAFolder) {
  const CrashState state{.entries = {{"f", {FolderContent::Kind::kFolder, std::make_shared<std::string>()}},
                                     {"f/a", {FolderContent::Kind::kFile, std::make_shared<std::string>("x\0y", 3)}},
                                     {"link", {FolderContent::Kind::kLink, std::make_shared<std::string>("f")}}},
                         .operations = 0,
                         .how = {}};
  fs::create_directories(at("out/of/date"));
  materialize(state, at("out"));
  const FolderContent content = content_of(at("out"));
  ASSERT_EQ(content.entries.size(), 3u);
  EXPECT_EQ(content.entries.at("f/a").bytes, std::string("x\0y", 3));
  EXPECT_EQ(content.entries.at("link").bytes, "f");
}

// The model does what the system does: after random operations, what is there when nothing is lost is what really is there.
TEST_F(CrashStates, WithNothingLostAreWhatTheSystemMade) {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    fs::remove_all(folder_.path());
    fs::create_directories(at("a"));
    folder_.write("b", "in the beginning");
    RecordingFileSystem files(folder_.path(), unsynced_disk());
    std::mt19937_64 random(seed);
    const auto any = [&] { return at(std::vector<std::string>{"a", "b", "c", "a/d", "a/e", "c/f", "c/d"}[random() % 7]); };
    for (int step = 0; step < 200; ++step) {  // many fail: those are not recorded
      switch (random() % 9) {
        case 0:
          files.rename(any(), any());
          break;
        case 1:
          files.exchange(any(), any());
          break;
        case 2:
          files.make_folder(any());
          break;
        case 3:
          files.make_link("nowhere", any());
          break;
        case 4:
          files.remove_file(any());
          break;
        case 5:
          files.remove_folder(any());
          break;
        default: {
          const fs::path path = any();
          if (fs::is_symlink(path) || fs::is_directory(path)) break;
          const int how[] = {O_APPEND, O_TRUNC, 0};
          const int descriptor = files.open(path, O_WRONLY | O_CREAT | how[random() % 3]);
          if (descriptor < 0) break;
          const std::string bytes(random() % 5, static_cast<char>('a' + step % 26));
          for (int i = 0; i < 2; ++i) files.write(descriptor, bytes.data(), bytes.size());
          if (random() % 4 == 0) files.truncate(descriptor, static_cast<off_t>(random() % 9));
          if (random() % 4 == 0) files.sync(descriptor);
          files.close(descriptor);
        }
      }
      if (random() % 16 == 0) sync_folder(folder_.path(), files);
    }
    std::string real;
    for (const auto& [path, entry] : content_of(folder_.path()).entries) {
      const char* sign = entry.kind == FolderContent::Kind::kLink ? "->" : entry.kind == FolderContent::Kind::kFile ? "=" : "";
      real += (real.empty() ? "" : " ") + path.string() + sign + entry.bytes;
    }
    std::set<std::string> texts;
    for (const CrashState& state : crash_states(files.recording(), {.most = 4, .first = files.size()}))
      texts.insert(text_of(state));
    EXPECT_THAT(texts, Contains(real)) << "seed " << seed;
  }
}

}  // namespace
}  // namespace sluice::crash_states_test
