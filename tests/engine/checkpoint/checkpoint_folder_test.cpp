#include "engine/checkpoint/checkpoint_folder.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/files/file.h"
#include "base/numbers/random.h"
#include "engine/contract/state.h"
#include "engine/contract/state_json.h"
#include "tests/engine/toy_checkpoint.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::checkpoint_folder_test {
namespace {

namespace fs = std::filesystem;
using ::testing::ElementsAre;
using toy::ToyRunFolder;

fs::path any_file(const fs::path& checkpoint, RandomStream& random) {
  std::vector<fs::path> files;
  for (const fs::directory_entry& entry : fs::recursive_directory_iterator(checkpoint)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::ranges::sort(files);
  return files[random.below(files.size())];
}

// A flipped bit, a missing end, some bytes more, or nothing at all.
std::string damaged(std::string bytes, RandomStream& random) {
  switch (random.below(4)) {
    case 0:
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 << random.below(8));
      break;
    case 1:
      bytes.resize(random.below(bytes.size()));
      break;
    case 2:
      bytes.append(1 + random.below(9), 'x');
      break;
    case 3:
      bytes[random.below(bytes.size())] ^= static_cast<char>(1 + random.below(255));
      break;
  }
  return bytes;
}

TEST(CheckpointFolder, AnyDamageIsFoundAndTheOlderCheckpointIsOffered) {
  const TemporaryFolder folder;
  RandomStream random(7, 0);
  ToyRunFolder run(folder.path() / "run");
  run.save(2, unsynced_disk());
  const fs::path checkpoint = run.path() / "checkpoints" / "2";
  for (int i = 0; i < 1000; ++i) {
    const fs::path file = any_file(checkpoint, random);
    const std::string whole = read_file(file);
    write_file_atomically(file, damaged(whole, random), unsynced_disk());
    const auto damage = damage_of(checkpoint);
    ASSERT_TRUE(damage) << i;
    EXPECT_EQ(damage->file, file);
    write_file_atomically(file, whole, unsynced_disk());
    ASSERT_FALSE(damage_of(checkpoint));
  }
}

TEST(CheckpointFolder, OffersTheNewestIntactOneAndNamesWhatIsWrongWithNewerOnes) {
  const TemporaryFolder folder;
  ToyRunFolder run(folder.path() / "run");
  run.save(2, unsynced_disk());
  fs::copy(run.path() / "checkpoints" / "2", folder.path() / "kept", fs::copy_options::recursive);
  run.save(4, unsynced_disk());
  fs::copy(folder.path() / "kept", run.path() / "checkpoints" / "2", fs::copy_options::recursive);
  fs::create_directory(run.path() / "checkpoints" / "6.tmp");
  fs::remove(run.path() / "checkpoints" / "4" / "policy" / "weights");
  const auto [newest, damaged] = newest_intact(run.path());
  ASSERT_TRUE(newest);
  EXPECT_EQ(newest->iterations, 2);
  ASSERT_EQ(damaged.size(), 1u);
  EXPECT_EQ(damaged[0].place.iterations, 4);
  EXPECT_EQ(damaged[0].damage.file.filename(), "weights");
  EXPECT_EQ(damaged[0].damage.what, "is missing");
}

TEST(CheckpointFolder, OfARunWithoutCheckpointsIsEmpty) {
  const TemporaryFolder folder;
  EXPECT_TRUE(list_checkpoints(folder.path()).empty());
  EXPECT_FALSE(newest_intact(folder.path()).place);
}

std::vector<Manifest> with_scores(const std::vector<double>& scores) {
  std::vector<Manifest> manifests;
  for (size_t i = 0; i < scores.size(); ++i) {
    manifests.push_back({.iterations = static_cast<int64_t>(i + 1) * 10, .metrics = {{"reward/score_mean", scores[i]}}});
  }
  return manifests;
}

TEST(CheckpointFolder, KeepsTheLastAndTheBest) {
  const double none = std::nan("");
  const auto gone = [](const std::vector<double>& scores, int64_t keep_last, std::optional<std::string> keep_best,
                       Best best = Best::kHighest) {
    return superfluous(with_scores(scores), {.keep_last = keep_last, .keep_best = std::move(keep_best), .best = best});
  };
  EXPECT_THAT(gone({1, 2, 3, 4}, 2, {}), ElementsAre(10, 20));
  EXPECT_THAT(gone({1, 2, 3, 4}, 0, {}), ElementsAre());
  EXPECT_THAT(gone({1, 2}, 5, {}), ElementsAre());
  EXPECT_THAT(gone({9, 2, 3, 4}, 1, "reward/score_mean"), ElementsAre(20, 30));
  EXPECT_THAT(gone({9, 2, 3, 4}, 1, "reward/score_mean", Best::kLowest), ElementsAre(10, 30));
  EXPECT_THAT(gone({5, 5, 1, 1}, 1, "reward/score_mean"), ElementsAre(10, 30)) << "of two as good the later one";
  EXPECT_THAT(gone({none, 3, none, 1}, 1, "reward/score_mean"), ElementsAre(10, 30));
  EXPECT_THAT(gone({1, 2, 3}, 1, "other"), ElementsAre(10, 20)) << "no such metric";
}

NodeState written_and_read(const NodeState& state) { return state_of(parse_json(state_json(state), "the state of a node")); }

TEST(NodeStateText, ComesBackBitForBit) {
  NodeState state;
  state.values = {{"integer", int64_t{-7}},
                  {"large", std::numeric_limits<int64_t>::min()},
                  {"whole", 3.0},
                  {"third", 1.0 / 3},
                  {"zero", -0.0},
                  {"infinite", -std::numeric_limits<double>::infinity()},
                  {"text", std::string("nan\n\"")},
                  {"bytes", std::string("\xff\x00\x80 a", 5)},
                  {"integers", std::vector<int64_t>{1, -2}},
                  {"none", std::vector<double>{}},
                  {"reals", std::vector<double>{0.1, std::numeric_limits<double>::infinity(), 5e-324}}};
  state.files = {{"samples.jsonl", 12}};
  const NodeState read = written_and_read(state);
  EXPECT_EQ(read, state);
  EXPECT_TRUE(std::signbit(std::get<double>(read.values.at("zero"))));
  state.values = {{"nan", std::nan("")}};
  EXPECT_TRUE(std::isnan(StateReader(written_and_read(state)).number("nan")));
}

TEST(NodeStateText, NamesWhatIsMissing) {
  NodeState state;
  state.values["row"] = std::string("five");
  const StateReader reader(state);
  EXPECT_THAT(message_of<UserError>([&] { reader.integer("row"); }), ::testing::HasSubstr("no integer \"row\""));
  EXPECT_THAT(message_of<UserError>([&] { reader.number("mean"); }), ::testing::HasSubstr("no number \"mean\""));
}

// What could not be read again is refused before it is saved.
TEST(NodeStateText, RefusesWhatHasNoPlaceInIt) {
  StateWriter writer;
  writer.put("row", int64_t{1});
  EXPECT_THAT(message_of<UserError>([&] { writer.put("row", 2.0); }), ::testing::HasSubstr("the state has \"row\" twice"));
  EXPECT_THAT(message_of<UserError>([&] { writer.put("\xff", 2.0); }), ::testing::HasSubstr("a name that is not UTF-8"));
  for (int i = 1; i < 4096; ++i) writer.put("value " + std::to_string(i), int64_t{i});
  EXPECT_EQ(written_and_read(writer.take()).values.size(), 4096u);
  const auto too_many = [] {
    StateWriter all;
    for (int i = 0; i <= 4096; ++i) all.put(std::to_string(i), int64_t{i});
  };
  EXPECT_THAT(message_of<UserError>(too_many), ::testing::HasSubstr("more than 4096 values"));
}

}  // namespace
}  // namespace sluice::engine::checkpoint_folder_test
