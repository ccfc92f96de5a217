#include "nodes/sources/row_cursor.h"

#include <gmock/gmock.h>

#include "base/error.h"
#include "engine/contract/registry.h"
#include "nodes/columns/columns.h"
#include "nodes/sources/jsonl_examples.h"
#include "nodes/sources/jsonl_prompts.h"
#include "nodes/sources/preference_pairs.h"
#include "tests/nodes/saved_state.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::row_cursor_test {
namespace {

using ::testing::HasSubstr;

// Rows that every source can read.
std::string rows(int first, int count) {
  std::string text;
  for (int i = first; i < first + count; ++i) {
    const std::string number = std::to_string(i);
    text += "{\"prompt\": \"p" + number + "\", \"label\": \"" + number + "\", \"completion\": \"c\", \"chosen\": \"a\", " +
            "\"rejected\": \"b\"}\n";
  }
  return text;
}

template <class T>
class RowSources : public ::testing::Test {
 protected:
  using Params = engine::detail::ParamsOf<T>;

  RowSources() {
    resources_.seed = 3;
    resources_.models["actor"] = testing::tiny_model(model_.path(), {});
    params_.path = {data_.write("a.jsonl", rows(0, 13)), data_.write("b.jsonl", rows(100, 5))};
    params_.weights = {3, 1};
    params_.groups_per_iteration = 4;
    if constexpr (requires { params_.max_tokens; }) params_.max_tokens = 64, params_.model = "actor";
  }

  std::unique_ptr<T> open() { return std::make_unique<T>(params_, resources_); }

  // The prompts of an iteration that draws `count` groups; none after the end of the data.
  static std::vector<std::string> iteration(T& source, int64_t index, int64_t count) {
    std::vector<std::string> prompts;
    source.begin_iteration({.index = index});
    for (int64_t g = 0; g < count; ++g) {
      engine::Group group;
      group.iteration = index, group.index = g;
      if (!source.next_group(group)) break;
      prompts.push_back(group.read(columns::kPrompt)[0]);
    }
    source.end_iteration({.index = index});
    return prompts;
  }

  // Iterations [begin, end). A filter that has groups replaced makes them draw more than groups_per_iteration.
  static std::vector<std::vector<std::string>> iterations(T& source, int64_t begin, int64_t end) {
    std::vector<std::vector<std::string>> all;
    for (int64_t i = begin; i < end; ++i) all.push_back(iteration(source, i, 4 + i % 3));
    return all;
  }

  testing::TinyFolder model_;
  TemporaryFolder data_;
  Params params_;
  engine::NodeResources resources_;
};

using Sources = ::testing::Types<JsonlPrompts, JsonlExamples, PreferencePairs>;
TYPED_TEST_SUITE(RowSources, Sources);

TYPED_TEST(RowSources, GoOnWithTheRowsOfAnUndisturbedRun) {
  const auto whole = this->iterations(*this->open(), 0, 12);
  for (int64_t stop = 0; stop < 12; ++stop) {
    const auto before = this->open(), after = this->open();
    this->iterations(*before, 0, stop);
    go_on(*after, state_of(*before));
    EXPECT_EQ(this->iterations(*after, stop, 12), std::vector(whole.begin() + stop, whole.end())) << stop;
  }
}

// Rows that an iteration draws to replace dropped groups are not drawn again by the next one.
TYPED_TEST(RowSources, DrawEachRowOfAnEpochOnceHoweverManyAnIterationTakes) {
  this->params_.weights = {};
  const auto source = this->open();
  std::vector<std::string> prompts;
  for (const int64_t count : {4, 9, 5}) std::ranges::copy(this->iteration(*source, 0, count), std::back_inserter(prompts));
  std::ranges::sort(prompts);
  EXPECT_EQ(prompts.size(), 18u);
  EXPECT_EQ(std::ranges::adjacent_find(prompts), prompts.end());
}

TYPED_TEST(RowSources, GoOnAtTheEndOfTheData) {
  this->params_.weights = {}, this->params_.epochs = 1;
  const auto before = this->open(), after = this->open();
  EXPECT_EQ(this->iteration(*before, 0, 20).size(), 18u);
  go_on(*after, state_of(*before));
  EXPECT_TRUE(this->iteration(*after, 1, 4).empty());
}

TYPED_TEST(RowSources, GoOnWithMoreEpochs) {
  this->params_.weights = {}, this->params_.epochs = 1;
  const auto before = this->open();
  this->iteration(*before, 0, 20);
  this->params_.epochs = 2;
  const auto after = this->open();
  go_on(*after, state_of(*before));
  EXPECT_EQ(this->iteration(*after, 1, 20).size(), 18u);
}

TYPED_TEST(RowSources, RefuseToGoOnWithOtherData) {
  const auto before = this->open();
  this->iteration(*before, 0, 4);
  this->data_.write("a.jsonl", rows(0, 14));
  const auto after = this->open();
  EXPECT_THAT(message_of<UserError>([&] { go_on(*after, state_of(*before)); }), HasSubstr("row 4 is another one now"));
}

TYPED_TEST(RowSources, RefuseAStateThatIsNotTheirs) { EXPECT_THROW(go_on(*this->open(), engine::NodeState()), UserError); }

}  // namespace
}  // namespace sluice::nodes::row_cursor_test
