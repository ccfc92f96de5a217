#include "engine/run/run_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>

#include "base/error.h"
#include "base/json/json.h"
#include "tests/temporary_folder.h"

namespace sluice::engine::run_files_test {
namespace {

namespace fs = std::filesystem;
using ::testing::SizeIs;

class RunFilesTest : public ::testing::Test {
 protected:
  RunFiles opened(std::map<std::string, int64_t> grown = {}) {
    return RunFiles({.plan = plan_,
                     .folder = {.path = folder_.path()},
                     .grown = std::move(grown),
                     .on_warning = [](const std::string& warning) { FAIL() << warning; }});
  }

  std::string content(const std::string& name) const { return read_file(folder_.path() / name); }

  TemporaryFolder folder_;
  const Plan plan_{};
};

TEST_F(RunFilesTest, HaveALineAnIteration) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  RunFiles files = opened();
  files.write({.iteration = 0, .metrics = {{"iteration", 0}, {"score_mean", 0.5}, {"loss", -3}}});
  files.write({.iteration = 1, .metrics = {{"iteration", 1}, {"score_mean", kNan}, {"loss", kInfinity}, {"far", 1e300}}});
  EXPECT_EQ(
      content("metrics.jsonl"),
      "{\"iteration\":0,\"score_mean\":0.5,\"loss\":-3}\n{\"iteration\":1,\"score_mean\":null,\"loss\":null,\"far\":1e+300}\n");
}

TEST_F(RunFilesTest, TellTheLengthsThatACheckpointKeeps) {
  RunFiles files = opened({{"metrics.jsonl", 7}, {"samples.jsonl", 9}, {"events.out.tfevents.1.host.2", 11}});
  files.write({.iteration = 0, .metrics = {{"loss", 1}}});
  const auto lengths = files.lengths();
  ASSERT_THAT(lengths, SizeIs(3));
  for (const auto& [name, bytes] : lengths) {
    if (name == "events.out.tfevents.1.host.2") continue;
    EXPECT_EQ(bytes, static_cast<int64_t>(fs::file_size(folder_.path() / name))) << name;
  }
  EXPECT_EQ(lengths.at("events.out.tfevents.1.host.2"), 11);
  EXPECT_EQ(lengths.at("metrics.jsonl"), 11);
}

TEST_F(RunFilesTest, AreWholeOnceTheyAreClosed) {
  RunFiles files = opened();
  files.close();
  EXPECT_TRUE(parse_json(content("trace.json"), "trace.json").is_array());
  files.write_costs();
  EXPECT_FALSE(fs::exists(folder_.path() / "costs.json")) << "nothing was measured";
}

TEST_F(RunFilesTest, NeedTheFolder) {
  EXPECT_THROW(RunFiles({.plan = plan_, .folder = {.path = folder_.path() / "nowhere"}, .grown = {}, .on_warning = {}}),
               UserError);
}

}  // namespace
}  // namespace sluice::engine::run_files_test
