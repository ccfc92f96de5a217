#include "tests/engine/ranks/parcels_in_one_process.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <memory>
#include <set>
#include <string>

#include "base/error.h"

namespace sluice::engine::testing::parcels_in_one_process_test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr auto kNothing = [](const Parcel&) {};

std::string failure_of(const ParcelsInOneProcess& parcels) {
  if (parcels.failures().empty()) return "";
  try {
    std::rethrow_exception(parcels.failures().front());
  } catch (const std::exception& error) {
    return error.what();
  }
}

TEST(ParcelsInOneProcess, ComeOnceEachInAnyOrder) {
  constexpr int64_t kCount = 50;
  for (uint64_t seed = 0; seed < 5; ++seed) {
    ParcelsInOneProcess parcels(2, seed, 100);
    std::multiset<std::string> came;  // of the thread of rank 1
    std::atomic<int64_t> left = 2 * kCount;
    std::promise<void> all;
    const auto count = [&] {
      if (--left == 0) all.set_value();
    };
    for (int64_t i = 0; i < kCount; ++i) {
      parcels.rank(0).send(1, {"edge", 0, i}, {.header = std::to_string(i), .columns = {}}, count);
      parcels.rank(1).receive(0, {"edge", 0, kCount - 1 - i}, 100, [&](const Parcel& parcel) {
        came.insert(parcel.header);
        count();
      });
    }
    all.get_future().wait();
    EXPECT_EQ(came.size(), static_cast<size_t>(kCount));
    EXPECT_EQ(std::set<std::string>(came.begin(), came.end()).size(), static_cast<size_t>(kCount));
    parcels.close();
    EXPECT_THAT(parcels.failures(), IsEmpty());
  }
}

TEST(ParcelsInOneProcess, OfOneKeyTwiceFail) {
  ParcelsInOneProcess parcels(2, 1, 0);
  for (int i = 0; i < 2; ++i) parcels.rank(0).receive(1, {"edge", 3, 4}, 100, kNothing);
  EXPECT_THAT(failure_of(parcels),
              HasSubstr("micro-batch 4 of iteration 3 on edge 'edge' is granted twice from rank 1 to rank 0"));
}

TEST(ParcelsInOneProcess, LargerThanTheirGrantFail) {
  ParcelsInOneProcess parcels(2, 1, 0);
  parcels.rank(0).receive(1, {"edge", 3, 4}, 5, [](const Parcel&) { ADD_FAILURE() << "it came"; });
  parcels.rank(1).send(0, {"edge", 3, 4}, {.header = "longer", .columns = {}}, {});
  EXPECT_THAT(failure_of(parcels), HasSubstr("from rank 1 to rank 0 takes 6 bytes, where 5 are granted"));
}

TEST(ParcelsInOneProcess, ThatAreLeftFailUnlessEndsAreExpected) {
  for (const bool expected : {false, true}) {
    for (const bool offered : {false, true}) {
      const auto dropped = std::make_shared<int>(0);
      ParcelsInOneProcess parcels(2, 1, 0);
      if (offered)
        parcels.rank(0).send(1, {"edge", 0, 0}, {}, [dropped] {});
      else
        parcels.rank(0).receive(1, {"edge", 0, 0}, 100, [dropped](const Parcel&) {});
      if (expected) parcels.rank(1).expect_early_ends();
      parcels.close();
      EXPECT_EQ(dropped.use_count(), 1);
      EXPECT_EQ(failure_of(parcels).empty(), expected) << failure_of(parcels);
    }
  }
}

TEST(ParcelsInOneProcess, ForARankThatHasClosedFailUnlessEndsAreExpected) {
  for (const bool expected : {false, true}) {
    ParcelsInOneProcess parcels(3, 1, 0);
    if (expected) parcels.rank(0).expect_early_ends();
    parcels.rank(0).close();
    EXPECT_THAT(parcels.failures(), IsEmpty());
    std::promise<void> came;
    parcels.rank(2).receive(1, {"edge", 0, 0}, 100, [&](const Parcel&) { came.set_value(); });
    parcels.rank(1).send(2, {"edge", 0, 0}, {}, {});
    came.get_future().wait();
    parcels.rank(1).send(0, {"edge", 0, 0}, {}, {});
    EXPECT_EQ(failure_of(parcels).empty(), expected) << failure_of(parcels);
  }
}

TEST(ParcelsInOneProcess, OfARankThatAbandonsThemAreOverForAll) {
  ParcelsInOneProcess parcels(3, 1, 0);
  parcels.rank(0).abandon();
  parcels.rank(1).send(2, {"edge", 0, 0}, {}, [] { ADD_FAILURE() << "done"; });
  parcels.rank(2).receive(1, {"edge", 0, 0}, 100, [](const Parcel&) { ADD_FAILURE() << "it came"; });
  EXPECT_THAT(failure_of(parcels), HasSubstr("rank 0 has closed its connection"));
}

}  // namespace
}  // namespace sluice::engine::testing::parcels_in_one_process_test
