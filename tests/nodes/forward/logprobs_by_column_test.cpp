#include "nodes/forward/logprobs_by_column.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/node_harness.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::logprobs_by_column_test {
namespace {

using ::testing::AllOf;
using testing::floats;
using testing::group_of;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using testing::needs_of;
using testing::run_node;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinySample;

constexpr engine::Column<std::string> kDomain{"domain", engine::Extent::kGroup};

engine::Group group_in(const std::string& domain, const std::vector<TinySample>& samples) {
  engine::Group group = group_of(samples);
  group.write(kDomain)[0] = domain;
  return group;
}

LogprobsByColumnParams by_domain(std::string otherwise = "") {
  return {.by = "domain",
          .models = {{"math", "one"}, {"code", "two"}, {"sums", "one"}},
          .otherwise = std::move(otherwise),
          .temperature = 0.7};
}

class LogprobsByColumnTest : public ::testing::Test {
 protected:
  const TinyFolder folder_;
  const testing::Models models_{{"one", tiny_model(folder_.path(), {.seed = 1})},
                                {"two", tiny_model(folder_.path(), {.seed = 2})}};
};

// As if every model were asked about all samples, and for each group one of them chosen.
TEST_F(LogprobsByColumnTest, AreThoseOfTheModelThatTheColumnChooses) {
  std::mt19937 random(7);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % static_cast<uint64_t>(limit)); };
  for (int trial = 0; trial < 8; ++trial) {
    const std::vector<std::string> domains{"math", "code", "sums", "rest"};
    std::vector<engine::Group> groups;
    std::vector<size_t> packing;
    std::vector<bool> second;  // by action
    for (int64_t g = 1 + below(6); g > 0; --g) {
      const std::string& domain = domains[static_cast<size_t>(below(4))];
      std::vector<TinySample> samples;
      for (int64_t s = 1 + below(3); s > 0; --s) {
        TinySample sample{.tokens = {}, .actions = below(4)};
        for (int64_t t = sample.actions + 1 + below(4); t > 0; --t) sample.tokens.push_back(2 + below(90));
        second.insert(second.end(), static_cast<size_t>(sample.actions), domain == "code" || domain == "rest");
        samples.push_back(sample);
      }
      groups.push_back(group_in(domain, samples));
      packing.push_back(1);
    }
    const auto of = [&](const char* name) {
      const LogprobsParams params{.model = name, .writes = "teacher_logprobs", .temperature = 0.7};
      return floats(run_node<Logprobs>(params, models_, groups), "teacher_logprobs");
    };
    std::vector<float> expected = of("one");
    const std::vector<float> other = of("two");
    for (size_t a = 0; a < expected.size(); ++a)
      if (second[a]) expected[a] = other[a];
    EXPECT_EQ(floats(run_node<LogprobsByColumn>(by_domain("two"), models_, groups), "teacher_logprobs"), expected);
    EXPECT_EQ(floats(run_node<LogprobsByColumn>(by_domain("two"), models_, groups, packing, 8), "teacher_logprobs"), expected);
  }
}

TEST_F(LogprobsByColumnTest, ValueWithoutAModelNamesItsGroup) {
  const std::vector<engine::Group> groups{group_in("math", {{{5, 6}, 1}}), group_in("rest", {{{5, 6}, 1}})};
  EXPECT_THAT(message_of<UserError>([&] { run_node<LogprobsByColumn>(by_domain(), models_, groups); }),
              HasSubstr("domain of group 1 is \"rest\", which has no model"));
}

TEST(LogprobsByColumn, SaysWhichValuesItKnows) {
  const engine::NodeNeeds needs = needs_of<LogprobsByColumn>(by_domain());
  ASSERT_EQ(needs.text_checks.size(), 1);
  EXPECT_EQ(needs.text_checks[0].column, "domain");
  for (const char* known : {"math", "code", "sums"}) EXPECT_NO_THROW(needs.text_checks[0].check(known));
  EXPECT_THAT(message_of<UserError>([&] { needs.text_checks[0].check("sum"); }),
              AllOf(HasSubstr("is none of \"math\", \"code\", \"sums\""), HasSubstr("did you mean \"sums\"?")));
  EXPECT_THAT(needs_of<LogprobsByColumn>(by_domain("one")).text_checks, IsEmpty());  // it can use any
}

}  // namespace
}  // namespace sluice::nodes::logprobs_by_column_test
