#include "cli/run/shown_samples.h"

#include <gtest/gtest.h>

namespace sluice::cli::shown_samples_test {
namespace {

using engine::ColumnData;
using engine::ColumnSpec;
using engine::DType;
using engine::Extent;
using engine::Layout;

const ColumnSpec kPrompt{"prompt", DType::kString, Extent::kGroup};
const ColumnSpec kResponse{"response", DType::kString, Extent::kSample};
const ColumnSpec kScore{"score", DType::kFloat32, Extent::kSample};

template <class T>
ColumnData column(const std::vector<T>& values) {
  ColumnData data(engine::dtype_of<T>(), values.size());
  std::ranges::copy(values, data.entries<T>().begin());
  return data;
}

/// A micro-batch of groups of two samples each.
struct Batch {
  explicit Batch(std::vector<int64_t> groups) : indices(std::move(groups)) {
    for (size_t g = 0; g < indices.size(); ++g) {
      layout.add_sample(3, 1);
      layout.add_sample(3, 1);
      layout.end_group();
    }
  }

  engine::WrittenColumns written(int64_t iteration, int64_t micro_batch = 0) const {
    return {.iteration = iteration, .micro_batch = micro_batch, .layout = layout, .group_indices = indices};
  }

  Layout layout;
  std::vector<int64_t> indices;
};

void write_texts(ShownSamples& samples, const Batch& batch, int64_t iteration, std::vector<std::string> prompts,
                 std::vector<std::string> responses) {
  const ColumnData prompt = column(prompts), response = column(responses);
  auto written = batch.written(iteration);
  written.columns = {{&kPrompt, &prompt}, {&kResponse, &response}};
  samples.wrote(written);
}

void write_scores(ShownSamples& samples, const Batch& batch, int64_t iteration, std::vector<float> scores) {
  const ColumnData score = column(scores);
  auto written = batch.written(iteration);
  written.columns = {{&kScore, &score}};
  samples.wrote(written);
}

TEST(ShownSamples, AreTheFirstOfTwoGroupsWithTheirScore) {
  ShownSamples samples(1);
  const Batch batch({0, 1, 2});
  write_texts(samples, batch, 0, {"1+1=", "2+2=", "3+3="}, {"2", "3", "4", "5", "6", "7"});
  write_scores(samples, batch, 0, {1, 0, 0.5, 0, 0, 0});
  EXPECT_EQ(samples.take(0, 80),
            "  prompt    1+1=\n  response  2  (score 1.000)\n  prompt    2+2=\n  response  4  (score 0.500)\n");
}

TEST(ShownSamples, OfOneGroupAreTwoOfItsSamples) {
  ShownSamples samples(1);
  write_texts(samples, Batch({0}), 0, {"1+1="}, {"2", "3"});
  EXPECT_EQ(samples.take(0, 80), "  prompt    1+1=\n  response  2\n  prompt    1+1=\n  response  3\n");
}

// A filter in front of the scorer drops group 0: what is left has other places.
TEST(ShownSamples, FindTheirScoreBehindAFilter) {
  ShownSamples samples(1);
  write_texts(samples, Batch({0, 1, 2}), 0, {"a", "b", "c"}, {"1", "2", "3", "4", "5", "6"});
  write_scores(samples, Batch({1, 2}), 0, {0.25, 0, 0, 0});
  EXPECT_EQ(samples.take(0, 80), "  prompt    a\n  response  1\n  prompt    b\n  response  3  (score 0.250)\n");
}

TEST(ShownSamples, AreThoseOfTheFirstMicroBatch) {
  ShownSamples samples(1);
  const ColumnData response = column<std::string>({"1", "2"});
  const Batch batch({7});
  auto written = batch.written(0, /*micro_batch=*/1);
  written.columns = {{&kResponse, &response}};
  samples.wrote(written);
  EXPECT_EQ(samples.take(0, 80), "");
}

TEST(ShownSamples, AreOfSomeIterationsOnly) {
  ShownSamples samples(2);
  for (int64_t iteration = 0; iteration < 4; ++iteration) write_texts(samples, Batch({0}), iteration, {"p"}, {"a", "b"});
  for (int64_t iteration = 0; iteration < 4; ++iteration) EXPECT_EQ(samples.take(iteration, 80).empty(), iteration % 2 == 1);
}

TEST(ShownSamples, AreForgottenOnceTheyAreShown) {
  ShownSamples samples(1);
  write_texts(samples, Batch({0}), 0, {"p"}, {"a", "b"});
  EXPECT_NE(samples.take(0, 80), "");
  EXPECT_EQ(samples.take(0, 80), "");
}

TEST(ShownSamples, AreEscapedAndCutAtTheWidth) {
  ShownSamples samples(1);
  const Batch batch({0, 1});
  write_texts(samples, batch, 0, {"\x1b[2Jx", "b"}, {"line\nline", "", "a response that is too long", ""});
  write_scores(samples, batch, 0, {1, 1, 1, 1});
  EXPECT_EQ(samples.take(0, 40),
            "  prompt    \\x1b[2Jx\n  response  line\\nline  (score 1.000)\n  prompt    b\n"
            "  response  a response...  (score 1.000)\n");
}

// None would look like no text.
TEST(ShownSamples, HaveSomeTextHoweverNarrowTheTerminalIs) {
  ShownSamples samples(1);
  const Batch batch({0, 1});
  write_texts(samples, batch, 0, {"a", "b"}, {"short", "", "a response that is too long", ""});
  write_scores(samples, batch, 0, {1, 1, 1, 1});
  EXPECT_EQ(samples.take(0, 20),
            "  prompt    a\n  response  short  (score 1.000)\n  prompt    b\n  response  a res...  (score 1.000)\n");
}

}  // namespace
}  // namespace sluice::cli::shown_samples_test
