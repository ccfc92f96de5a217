#include "engine/observe/event_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <limits>

#include "base/error.h"
#include "tests/source_folder.h"

namespace sluice::engine::event_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using ::testing::MatchesRegex;

class EventFiles : public ::testing::Test {
 protected:
  EventFiles() {
    std::string pattern = ::testing::TempDir() + "sluice_events_XXXXXX";
    if (::mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder_ = pattern;
  }
  ~EventFiles() override { fs::remove_all(folder_); }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    return names;
  }

  // The bytes of the only file, in the form of the golden file: 32 bytes a line.
  std::string hexadecimal() const {
    std::ifstream stream(folder_ / names().at(0), std::ios::binary);
    const std::string bytes{std::istreambuf_iterator<char>(stream), {}};
    std::string text;
    for (size_t i = 0; i < bytes.size(); ++i) {
      const auto byte = static_cast<unsigned char>(bytes[i]);
      text += {"0123456789abcdef"[byte >> 4], "0123456789abcdef"[byte & 15]};
      if (i % 32 == 31 || i + 1 == bytes.size()) text += '\n';
    }
    return text;
  }

  fs::path folder_;
};

std::string golden() {
  std::ifstream stream(fs::path(tests::source_folder()) / "tests/golden/engine/event_file.hex");
  return {std::istreambuf_iterator<char>(stream), {}};
}

// tests/oracles/event_file_reference.py has the same rows.
TEST_F(EventFiles, HoldTheBytesThatTensorBoardsOwnWriterWrites) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const std::string sentence = "a_name_that_is_longer_than_one_byte_of_length_can_tell_";
  EventFile file({.path = folder_}, 1700000000.25);
  file.scalars(0, 1700000001.5, {{"score_mean", 0.1}, {"loss", -0.0}, {"tokens", 5632}});
  file.scalars(1, 1700000002.75, {{"score_mean", kNan}, {"loss", kInfinity}, {"kl_mean", -1e-42}, {"huge", -kInfinity}});
  file.scalars(300, 1700000003, {{sentence + sentence + sentence, 1e30}, {"größe", 3}});
  file.scalars(int64_t{1} << 40, 1700000004, {});
  file.close();
  EXPECT_EQ(hexadecimal(), golden());
}

TEST_F(EventFiles, AreNamedSoThatTensorBoardFindsThem) {
  const EventFile file({.path = folder_}, 1700000000.25);
  EXPECT_THAT(names(), ElementsAre(MatchesRegex("events\\.out\\.tfevents\\.1700000000\\..+\\." + std::to_string(::getpid()))));
}

TEST_F(EventFiles, CanBeReadAfterEachCall) {
  EventFile file({.path = folder_}, 1700000000.25);
  const size_t begun = hexadecimal().size();
  file.scalars(0, 1700000001.5, {{"loss", 1}});
  EXPECT_GT(hexadecimal().size(), begun);
}

TEST_F(EventFiles, NameTheFileThatCannotBeWritten) {
  try {
    EventFile file({.path = folder_ / "none"});
    FAIL() << "nothing was thrown";
  } catch (const UserError& error) {
    EXPECT_THAT(error.what(), ::testing::HasSubstr((folder_ / "none/events.out.tfevents.").string()));
  }
}

}  // namespace
}  // namespace sluice::engine::event_file_test
