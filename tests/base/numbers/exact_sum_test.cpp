#include "base/numbers/exact_sum.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "base/numbers/bytes.h"
#include "tests/source_folder.h"

namespace sluice::exact_sum_test {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

ExactSum sum_of(const std::vector<double>& numbers) {
  ExactSum sum;
  for (const double number : numbers) sum.add(number);
  return sum;
}

TEST(ExactSum, RoundsOnceAsPythonsFsum) {
  std::ifstream file(std::string(tests::source_folder()) + "/tests/golden/base/exact_sums.txt");
  std::string line;
  int lines = 0;
  for (; std::getline(file, line); ++lines) {
    std::vector<double> numbers;
    std::istringstream words(line);
    for (std::string word; words >> word;) numbers.push_back(std::strtod(word.c_str(), nullptr));
    const double expected = numbers.front();
    numbers.erase(numbers.begin());
    EXPECT_EQ(sum_of(numbers).value(), expected) << line;
  }
  EXPECT_GT(lines, 100);
}

TEST(ExactSum, IsTheSameInWhateverOrderAndPieces) {
  std::mt19937 random(7);
  std::vector<double> numbers;
  for (int i = 0; i < 5000; ++i) numbers.push_back(std::ldexp(std::generate_canonical<double, 53>(random) - .5, i % 120 - 60));
  const ExactSum whole = sum_of(numbers);
  for (int turn = 0; turn < 20; ++turn) {
    std::ranges::shuffle(numbers, random);
    const auto cut = static_cast<std::ptrdiff_t>(random() % numbers.size());
    ExactSum pieces = sum_of({numbers.begin() + cut, numbers.end()});
    pieces.add(sum_of({numbers.begin(), numbers.begin() + cut}));
    EXPECT_EQ(pieces, whole);
    EXPECT_EQ(pieces.value(), whole.value());
  }
}

TEST(ExactSum, HasRoomForManyLargeNumbers) {
  ExactSum sum;
  for (int i = 0; i < 100000; ++i) sum.add(1e300);
  for (int i = 0; i < 99999; ++i) sum.add(-1e300);
  EXPECT_EQ(sum.value(), 1e300);
}

TEST(ExactSum, OfNothingIsZero) { EXPECT_EQ(ExactSum().value(), 0); }

TEST(ExactSum, OverflowsOnlyInItsResult) {
  EXPECT_EQ(sum_of({1e308, 1e308}).value(), kInfinity);
  EXPECT_EQ(sum_of({-1e308, -1e308}).value(), -kInfinity);
}

TEST(ExactSum, AddsInfinitiesAndNanAsTheyAre) {
  EXPECT_EQ(sum_of({1, kInfinity, -3}).value(), kInfinity);
  EXPECT_EQ(sum_of({-kInfinity, 1e308}).value(), -kInfinity);
  EXPECT_TRUE(std::isnan(sum_of({kInfinity, -kInfinity}).value()));
  EXPECT_TRUE(std::isnan(sum_of({1, std::nan(""), 2}).value()));
}

TEST(ExactSum, TakesProductsWithoutRounding) {
  const double a = 1 + std::ldexp(1, -30);  // a^2 = 1 + 2^-29 + 2^-60
  ExactSum sum;
  sum.add_product(a, a);
  sum.add(-1);
  sum.add(-std::ldexp(1, -29));
  EXPECT_EQ(sum.value(), std::ldexp(1, -60));
}

std::string bytes_of(const ExactSum& sum) {
  ByteWriter writer;
  sum.write(writer);
  return writer.take();
}

ExactSum read(const std::string& bytes) {
  ByteReader reader(bytes);
  const ExactSum sum = ExactSum::read(reader);
  reader.expect_end();
  return sum;
}

TEST(ExactSum, IsReadAsItWasWritten) {
  std::mt19937 random(8);
  for (int turn = 0; turn < 2000; ++turn) {
    ExactSum sum;
    const int count = static_cast<int>(random() % 1500), spread = 1 + static_cast<int>(random() % 1000);
    for (int i = 0; i < count; ++i) {
      const int exponent = static_cast<int>(random() % static_cast<unsigned>(2 * spread)) - spread;
      sum.add(std::ldexp(std::generate_canonical<double, 53>(random) - .5, exponent));
    }
    if (turn % 7 == 0) sum.add(kInfinity);
    if (turn % 11 == 0) sum.add(-kInfinity);
    if (turn % 13 == 0) sum.add(std::nan(""));
    ExactSum again = read(bytes_of(sum));
    ASSERT_EQ(again, sum);
    sum.add(-.1);
    again.add(-.1);
    ASSERT_EQ(again, sum);
  }
}

TEST(ExactSum, OfTheLargestNumbersIsReadAsItWasWritten) {
  ExactSum sum;
  for (int i = 0; i < 100000; ++i) sum.add(-std::numeric_limits<double>::max());
  EXPECT_EQ(read(bytes_of(sum)), sum);
}

TEST(ExactSum, IsWrittenInFewBytes) {
  EXPECT_EQ(bytes_of(ExactSum()).size(), 3u);
  EXPECT_EQ(bytes_of(sum_of({1})).size(), 7u);
  EXPECT_EQ(bytes_of(sum_of({-1})).size(), 7u);
  EXPECT_LE(bytes_of(sum_of({.1, -.2, 3e5})).size(), 3u + 4 * 4);
}

TEST(ExactSum, IsWrittenAlikeWhereItIsEqual) { EXPECT_EQ(bytes_of(sum_of({3, -4, 1e300})), bytes_of(sum_of({1e300, -1}))); }

TEST(ExactSum, ThatIsDamagedIsRefused) {
  const std::string bytes = bytes_of(sum_of({1e300, 1e-300}));
  for (size_t size = 0; size < bytes.size(); ++size) EXPECT_THROW(read(bytes.substr(0, size)), InternalError) << size;
  EXPECT_THROW(read(std::string("\x10\0\0", 3)), InternalError);              // a flag that there is not
  EXPECT_THROW(read("\x01\x40\x04" + std::string(20, '\1')), InternalError);  // chunks after the last
  EXPECT_THROW(read(std::string("\0\x42\1", 3) + std::string(8, '\xff')), InternalError);
}

TEST(ExactMoments, KeepTheSpreadOfNumbersFarFromZero) {
  ExactMoments moments;
  for (const double x : {1e9 + 1, 1e9 + 2, 1e9 + 3, 1e9 + 4}) moments.add(x);
  EXPECT_EQ(moments.count(), 4);
  EXPECT_EQ(moments.mean(), 1e9 + 2.5);
  EXPECT_EQ(moments.squared_deviations(), 5);  // 2 (0.5^2 + 1.5^2)
}

TEST(ExactMoments, OfEqualNumbersHaveNoSpread) {
  ExactMoments moments;
  for (int i = 0; i < 7; ++i) moments.add(0.1F, 0.3F);
  EXPECT_LT(moments.squared_deviations(), 1e-30);  // the mean is rounded
}

TEST(ExactMoments, AreWeighted) {
  ExactMoments moments;  // 1, 1, 1, 5
  moments.add(1, 3);
  moments.add(5, 1);
  EXPECT_EQ(moments.mean(), 2);
  EXPECT_EQ(moments.squared_deviations(), 12);
}

TEST(ExactMoments, WithoutWeightAreZero) {
  EXPECT_EQ(ExactMoments().mean(), 0);
  EXPECT_EQ(ExactMoments().squared_deviations(), 0);
}

TEST(ExactMoments, OfANanAreNan) {
  ExactMoments moments;
  moments.add(1);
  moments.add(std::nan(""));
  EXPECT_TRUE(std::isnan(moments.mean()));
  EXPECT_TRUE(std::isnan(moments.squared_deviations()));
}

}  // namespace
}  // namespace sluice::exact_sum_test
