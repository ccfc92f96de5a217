#include "models/train/fixed_point_sums.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstring>
#include <limits>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace sluice::models::fixed_point_sums_test {
namespace {

constexpr int64_t kFloats = 3 * kFloatsOfABlock + 77;

// Also between processes.
std::shared_ptr<std::byte> common_memory(size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  return {static_cast<std::byte*>(memory), [bytes](std::byte* of) { ::munmap(of, bytes); }};
}

FixedPointSums new_sums() {
  FixedPointSums sums(common_memory(FixedPointSums::bytes_for(kFloats)), kFloats);
  sums.set_up();
  return sums;
}

std::vector<float> taken(const FixedPointSums& sums) {
  std::vector<float> values(kFloats);
  for (int64_t first = 0; first < kFloats; first += kFloatsOfABlock)
    sums.take({first, std::min(kFloats, first + kFloatsOfABlock)}, values.data() + first);
  return values;
}

struct Addend {
  FloatRange range;
  std::vector<float> values;
};

// Of sizes as gradients have them.
std::vector<Addend> random_addends(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::uniform_int_distribution<int64_t> place(0, kFloats);
  std::vector<Addend> addends;
  for (int i = 0; i < count; ++i) {
    const auto [begin, end] = std::minmax({place(random), place(random)});
    Addend& addend = addends.emplace_back(Addend{.range = {begin, end}});
    const float size = std::pow(10.0F, 6 * normal(random) / 3);
    for (int64_t k = begin; k < end; ++k) addend.values.push_back(size * normal(random));
  }
  return addends;
}

void add_all(FixedPointSums& sums, std::vector<Addend> addends) {
  for (Addend& addend : addends) sums.add(addend.range, addend.values.data());
}

TEST(FixedPointSums, AreTheSumsInAnyOrder) {
  std::vector<Addend> addends = random_addends(40, 1);
  std::vector<double> expected(kFloats);
  for (const Addend& addend : addends)
    for (size_t i = 0; i < addend.values.size(); ++i) expected[static_cast<size_t>(addend.range.begin) + i] += addend.values[i];
  FixedPointSums first = new_sums();
  add_all(first, addends);
  const std::vector<float> sums = taken(first);
  for (size_t i = 0; i < sums.size(); ++i) {
    const double rounding = 40 * std::exp2(-33) + std::abs(expected[i]) * std::exp2(-23);
    ASSERT_NEAR(sums[i], expected[i], rounding) << i;
  }
  std::mt19937_64 random(2);
  for (int repeat = 0; repeat < 3; ++repeat) {
    std::ranges::shuffle(addends, random);
    FixedPointSums other = new_sums();
    add_all(other, addends);
    EXPECT_EQ(taken(other), sums);
  }
}

TEST(FixedPointSums, HaveTheSameBitsWhoeverAddsMeanwhile) {
  const std::vector<Addend> addends = random_addends(32, 3);
  FixedPointSums alone = new_sums(), shared = new_sums();
  add_all(alone, addends);
  std::vector<std::thread> threads;
  for (size_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      add_all(shared, {addends.begin() + 8 * static_cast<ptrdiff_t>(t), addends.begin() + 8 * static_cast<ptrdiff_t>(t + 1)});
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(taken(shared), taken(alone));
}

// Those of processes that have no memory in common.
TEST(FixedPointSums, HaveTheSameBitsWhereEachIsGivenWhatTheOtherHas) {
  const std::vector<Addend> addends = random_addends(30, 4);
  FixedPointSums alone = new_sums(), first = new_sums(), second = new_sums();
  add_all(alone, addends);
  add_all(first, {addends.begin(), addends.begin() + 11});
  add_all(second, {addends.begin() + 11, addends.end()});
  const FloatRange all{0, kFloats}, end{3 * kFloatsOfABlock, kFloats};
  std::vector<int64_t> given(second.given(all), second.given(all) + kFloats);
  first.add_given(all, given.data());
  EXPECT_EQ(taken(first), taken(alone));
  second.add_given(end, first.given(end));  // once more: twice what the first has, and a part of a block
  EXPECT_NE(taken(second), taken(alone));
}

TEST(FixedPointSums, AreNotFiniteWhereWhatIsGivenIsNot) {
  FixedPointSums first = new_sums(), second = new_sums();
  std::vector<float> values{1, std::numeric_limits<float>::infinity(), 1};
  second.add({kFloatsOfABlock + 1, kFloatsOfABlock + 4}, values.data());
  const FloatRange all{0, kFloats};
  first.add_given(all, second.given(all));
  const std::vector<float> after = taken(first);
  EXPECT_EQ(after.front(), 0);
  EXPECT_TRUE(std::isnan(after[kFloatsOfABlock]));
  EXPECT_EQ(after.back(), 0);
  FixedPointSums third = new_sums();
  third.add_given(all, first.given(all));  // likewise of what is given on
  EXPECT_TRUE(std::isnan(taken(third)[kFloatsOfABlock]));
}

TEST(FixedPointSums, AreNotFiniteWhereTwoTogetherAreTooLarge) {
  FixedPointSums first = new_sums(), second = new_sums();
  for (FixedPointSums* const sums : {&first, &second}) {
    for (int i = 0; i < 3; ++i) {
      float value = 0x1p28F;
      sums->add({7, 8}, &value);
    }
  }
  const FloatRange all{0, kFloats};
  first.add_given(all, second.given(all));
  EXPECT_TRUE(std::isnan(taken(first)[7]));
  EXPECT_EQ(taken(second)[7], 0x1.8p29F);
}

TEST(FixedPointSums, LeaveNothingOfWhatWasAdded) {
  FixedPointSums sums = new_sums();
  std::vector<float> values(100, 1.5F);
  sums.add({5, 105}, values.data());
  EXPECT_EQ(values, std::vector<float>(100));
  sums.clear({0, kFloatsOfABlock});
  EXPECT_EQ(taken(sums), std::vector<float>(kFloats));
}

// Of the block, until it is cleared.
TEST(FixedPointSums, AreNotFiniteWhereAnAddendIsNot) {
  for (const float bad : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN(), -1e30F}) {
    FixedPointSums sums = new_sums();
    std::vector<float> values{1, bad, 1};
    sums.add({kFloatsOfABlock + 1, kFloatsOfABlock + 4}, values.data());
    const std::vector<float> after = taken(sums);
    EXPECT_EQ(after.front(), 0);
    EXPECT_TRUE(std::isnan(after[kFloatsOfABlock]));
    EXPECT_EQ(after.back(), 0);
    sums.clear({kFloatsOfABlock, 2 * kFloatsOfABlock});
    EXPECT_EQ(taken(sums), std::vector<float>(kFloats));
  }
}

TEST(FixedPointSums, AreNotFiniteWhereTheyAreTooLarge) {
  FixedPointSums sums = new_sums();
  const auto add = [&] {
    float value = 0x1p28F;
    sums.add({7, 8}, &value);
  };
  for (int i = 0; i < 4; ++i) add();
  EXPECT_EQ(taken(sums)[7], 0x1p30F);
  add();
  EXPECT_TRUE(std::isnan(taken(sums)[7]));
  for (int i = 0; i < 100; ++i) add();  // and stay it
  EXPECT_TRUE(std::isnan(taken(sums)[7]));
}

TEST(FixedPointSums, AreAddedByProcesses) {
  FixedPointSums sums = new_sums();
  for (int process = 0; process < 3; ++process) {
    const pid_t child = ::fork();
    if (child == 0) {
      float value = 0.25F;
      sums.add({kFloatsOfABlock, kFloatsOfABlock + 1}, &value);
      ::_exit(0);
    }
    int status = 0;
    ::waitpid(child, &status, 0);
    ASSERT_EQ(status, 0);
  }
  EXPECT_EQ(taken(sums)[kFloatsOfABlock], 0.75F);
}

// Its values lie in a page that nobody may read, so it dies with the lock.
TEST(FixedPointSums, TellThatAProcessWasLostWhileItAdded) {
  FixedPointSums sums = new_sums();
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGSEGV, SIG_DFL);
    void* const forbidden = ::mmap(nullptr, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    sums.add({0, 16}, static_cast<float*>(forbidden));
    ::_exit(0);
  }
  int status = 0;
  ::waitpid(child, &status, 0);
  ASSERT_TRUE(WIFSIGNALED(status));
  float value = 1;
  EXPECT_THROW(sums.add({3, 4}, &value), UserError);
  EXPECT_THROW(sums.add({3, 4}, &value), UserError);
  EXPECT_NO_THROW(sums.add({kFloatsOfABlock, kFloatsOfABlock + 1}, &value));
}

}  // namespace
}  // namespace sluice::models::fixed_point_sums_test
