#include "engine/ranks/contribution_bytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <string>

#include "base/numbers/random.h"

namespace sluice::engine::contribution_bytes_test {
namespace {

double any_number(RandomStream& random) {
  switch (random.below(20)) {
    case 0:
      return std::numeric_limits<double>::infinity();
    case 1:
      return -std::numeric_limits<double>::infinity();
    case 2:
      return std::nan("");
    default:
      return std::ldexp(random.normal(), static_cast<int>(random.below(200)) - 100);
  }
}

Part any_part(RandomStream& random, const std::string& name) {
  Part part{.name = name, .kind = static_cast<Metric>(random.below(5)), .recorded = random.below(4) != 0};
  if (!part.recorded) return part;
  part.top = any_number(random);
  const uint64_t numbers = random.below(700);  // more than a sum takes between two carries
  for (uint64_t i = 0; i < numbers; ++i) part.numbers.add(random.below(50) == 0 ? any_number(random) : random.normal());
  const uint64_t counts = random.below(4);
  for (uint64_t i = 0; i < counts; ++i) part.counts.push_back(static_cast<int64_t>(random.below(1u << 31)) << 20);
  return part;
}

Contribution any_contribution(uint64_t seed) {
  RandomStream random(seed, 9);
  Contribution contribution;
  const uint64_t parts = random.below(6);
  for (uint64_t i = 0; i < parts; ++i) contribution.push_back(any_part(random, "group/name" + std::to_string(i)));
  return contribution;
}

std::string bytes_of(const Contribution& contribution) {
  ByteWriter writer;
  write_contribution(writer, contribution);
  return writer.take();
}

Contribution read(const std::string& bytes) {
  ByteReader reader(bytes);
  Contribution contribution = read_contribution(reader);
  reader.expect_end();
  return contribution;
}

TEST(ContributionBytes, AreReadAsTheyWereWritten) {
  for (uint64_t seed = 0; seed < 300; ++seed) {
    const Contribution contribution = any_contribution(seed), again = read(bytes_of(contribution));
    ASSERT_EQ(again.size(), contribution.size());
    for (size_t i = 0; i < again.size(); ++i) {
      EXPECT_EQ(again[i].name, contribution[i].name);
      EXPECT_EQ(again[i].kind, contribution[i].kind);
      EXPECT_EQ(again[i].recorded, contribution[i].recorded);
      EXPECT_EQ(std::bit_cast<uint64_t>(again[i].top), std::bit_cast<uint64_t>(contribution[i].top));
      EXPECT_EQ(again[i].numbers, contribution[i].numbers);
      EXPECT_EQ(again[i].counts, contribution[i].counts);
    }
  }
}

TEST(ContributionBytes, ThatEndTooEarlyAreRefused) {
  const std::string bytes = bytes_of(any_contribution(4));
  ASSERT_GT(bytes.size(), 100u);
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_THROW(read(bytes.substr(0, size)), InternalError) << size;
}

TEST(ContributionBytes, OfAKindThatThereIsNotAreRefused) {
  std::string bytes = bytes_of({{.name = "a"}});
  bytes[bytes.size() - 2] = 5;
  EXPECT_THROW(read(bytes), InternalError);
}

TEST(ContributionBytes, AreFew) {
  Part loss{.name = "policy/loss", .recorded = true};
  for (int i = 0; i < 100; ++i) loss.numbers.add(.1 * i, .5);
  EXPECT_LT(bytes_of({loss}).size(), 120u);
}

}  // namespace
}  // namespace sluice::engine::contribution_bytes_test
