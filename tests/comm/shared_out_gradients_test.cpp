#include <gtest/gtest.h>

#include <array>
#include <bit>
#include <chrono>
#include <cstring>
#include <future>
#include <memory>
#include <string>
#include <torch/csrc/distributed/c10d/HashStore.hpp>
#include <utility>

#include "base/error.h"
#include "base/numbers/float_range.h"
#include "comm/gradient_group.h"
#include "comm/process_group.h"
#include "tests/comm/gradients.h"

namespace sluice::comm::shared_out_gradients_test {
namespace {

using namespace std::chrono_literals;
using engine::World;

// Carries out what `begin` begins with a callback for its end.
template <class Begin>
void wait_for(const Begin& begin) {
  const auto done = std::make_shared<std::promise<void>>();
  begin([done] { done->set_value(); });
  ASSERT_EQ(done->get_future().wait_for(60s), std::future_status::ready);
}

std::unique_ptr<GlooGradients> connected(c10d::Store& store, World world, int slots) {
  return std::make_unique<GlooGradients>(
      connect_ranks(store, "ranks", world), slots, [](const std::exception_ptr&) { ADD_FAILURE() << "it failed"; },
      /*most_staged=*/2 << 20);  // so that rounds are many
}

std::vector<int64_t> begins_of(int64_t count, int size) {
  std::vector<int64_t> begins;
  for (int rank = 0; rank < size; ++rank) begins.push_back(owned_floats(count, rank, size).begin);
  begins.push_back(count);
  return begins;
}

// What a rank heard of the sum while it was added.
struct Heard {
  Floats floats;
  int64_t begin = -1;

  void add(int64_t at, std::span<const float> sum) {
    if (begin < 0) begin = at;
    EXPECT_EQ(at, begin + std::ssize(floats)) << "blocks are out of order";
    floats.insert(floats.end(), sum.begin(), sum.end());
  }
};

bool same_floats(const float* a, const float* b, int64_t count) {
  return std::memcmp(a, b, static_cast<size_t>(count) * sizeof(float)) == 0;
}

void expect_owned(std::vector<Floats>& parts, const Heard& heard, const Floats& expected, World world) {
  const auto count = std::ssize(expected);
  const FloatRange own = owned_floats(count, world.rank, world.size);
  Floats wanted(expected.size());
  std::copy(expected.begin() + own.begin, expected.begin() + own.end, wanted.begin() + own.begin);
  EXPECT_TRUE(same_floats(parts[0].data(), wanted.data(), count));
  for (size_t part = 1; part < parts.size(); ++part) EXPECT_EQ(parts[part], Floats(expected.size()));
  ASSERT_EQ(std::ssize(heard.floats), own.size());
  EXPECT_EQ(heard.begin, own.size() > 0 ? own.begin : -1);
  EXPECT_TRUE(own.size() == 0 || same_floats(heard.floats.data(), wanted.data() + own.begin, own.size()));
}

struct SharedBy {
  int size;
  int slots;
};

class SharedOutGradients : public ::testing::TestWithParam<SharedBy> {};

// reduce_scatter() gives an owner the bits of one process, and all_gather() gives everybody what owners have.
TEST_P(SharedOutGradients, HaveTheBitsOfOneProcess) {
  const auto [size, slots] = GetParam();
  const auto store = c10::make_intrusive<c10d::HashStore>();
  run_ranks(size, [&, size = size, slots = slots](World world) {
    const auto group = connected(*store, world, slots);
    for (const int64_t count : {1, 15, 16384, 100003, 3 * (1 << 20) + 7}) {
      SCOPED_TRACE("rank " + std::to_string(world.rank) + ", " + std::to_string(count) + " floats");
      const MadeUpGradient gradient{.seed = 1, .slots = slots, .count = count};
      const Floats expected = gradient.sum();
      std::vector<Floats> parts = gradient.parts_of(world);
      std::vector<float*> pointers;
      for (Floats& part : parts) pointers.push_back(part.data());
      Heard heard;
      wait_for([&](auto done) {
        group->reduce_scatter(
            pointers, count, [&](int64_t begin, auto sum) { heard.add(begin, sum); }, done);
      });
      expect_owned(parts, heard, expected, world);
      wait_for([&](auto done) { group->all_gather(pointers[0], begins_of(count, size), done); });
      EXPECT_TRUE(same_floats(pointers[0], expected.data(), count));
    }
  });
}

INSTANTIATE_TEST_SUITE_P(, SharedOutGradients,
                         ::testing::Values(SharedBy{1, 1}, SharedBy{1, 4}, SharedBy{2, 2}, SharedBy{2, 4}, SharedBy{2, 6},
                                           SharedBy{3, 3}, SharedBy{4, 4}, SharedBy{4, 8}),
                         [](const auto& info) {
                           return std::to_string(info.param.slots) + "SlotsOn" + std::to_string(info.param.size);
                         });

TEST(AllGather, TakesAnyRanges) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  run_ranks(3, [&](World world) {
    const auto group = connected(*store, world, 3);
    Floats values(10, -1);
    const std::vector<int64_t> begins{0, 7, 7, 10};  // rank 1 has nothing
    for (int64_t i = begins[static_cast<size_t>(world.rank)]; i < begins[static_cast<size_t>(world.rank) + 1]; ++i)
      values[static_cast<size_t>(i)] = static_cast<float>(i);
    wait_for([&](auto done) { group->all_gather(values.data(), begins, done); });
    EXPECT_EQ(values, (Floats{0, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
  });
}

// Also what is no number, bit by bit, and where a pair has nothing.
TEST(Exchange, GivesEachRankWhatTheOthersHaveForIt) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  run_ranks(3, [&](World world) {
    const auto group = connected(*store, world, 3);
    const auto value = [](int from, int to, int64_t i) {
      return std::bit_cast<float>(static_cast<uint32_t>(0x7FC00000 + 100 * from + 10 * to + i));
    };
    const auto count = [](int from, int to) { return int64_t{from == 2 && to == 0 ? 0 : 5 + from + to}; };
    for (int round = 0; round < 3; ++round) {
      std::vector<Floats> out, in;
      std::vector<engine::GradientGroup::Stretch> gives, gets;
      for (int other = 0; other < 3; ++other) {
        if (other == world.rank) continue;
        Floats& own = out.emplace_back();
        for (int64_t i = 0; i < count(world.rank, other); ++i) own.push_back(value(world.rank, other, i));
        in.emplace_back(static_cast<size_t>(count(other, world.rank)), -1);
        gives.push_back({other, own.data(), std::ssize(own)});
        gets.push_back({other, in.back().data(), std::ssize(in.back())});
      }
      wait_for([&](auto done) { group->exchange(gives, gets, done); });
      for (const auto& got : gets)
        for (int64_t i = 0; i < got.count; ++i)
          EXPECT_EQ(std::bit_cast<uint32_t>(got.values[i]), std::bit_cast<uint32_t>(value(got.rank, world.rank, i)));
    }
  });
}

// The one that hears of it says so; the other one loses its connection.
TEST(Announcement, OperationsThatDifferAreNamed) {
  const auto store = c10::make_intrusive<c10d::HashStore>();
  std::array<std::string, 2> said;
  run_ranks(2, [&](World world) {
    std::promise<std::exception_ptr> failed;
    GlooGradients group(connect_ranks(*store, "ranks", world), 2,
                        [&](std::exception_ptr why) { failed.set_value(std::move(why)); });
    Floats values(100);
    float* const pointer = values.data();
    group.all_reduce({&pointer, 1}, 100, [] {});
    if (world.rank == 0)
      group.all_gather(values.data(), {0, 50, 100}, [] {});
    else
      group.all_gather(values.data(), {0, 51, 100}, [] {});
    try {
      std::rethrow_exception(failed.get_future().get());
    } catch (const std::exception& error) {
      said[static_cast<size_t>(world.rank)] = error.what();
    }
  });
  EXPECT_TRUE(said[0].find("rank 1 began all_gather of 100 floats, operation 1 of the group, where rank 0 began all_gather") !=
                  std::string::npos ||
              said[1].find("rank 0 began all_gather") != std::string::npos)
      << said[0] << "\n"
      << said[1];
}

}  // namespace
}  // namespace sluice::comm::shared_out_gradients_test
