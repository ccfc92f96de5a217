#include "cli/process/core_shares.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

namespace sluice::cli::core_shares_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST(SharesOfCores, AreDisjointAndNearlyAsMany) {
  const std::vector<int> cores{0, 1, 2, 5, 6, 7, 9};
  EXPECT_THAT(share_of_cores(cores, 0, 3), ElementsAre(0, 1));
  EXPECT_THAT(share_of_cores(cores, 1, 3), ElementsAre(2, 5));
  EXPECT_THAT(share_of_cores(cores, 2, 3), ElementsAre(6, 7, 9));
  EXPECT_EQ(share_of_cores(cores, 0, 1), cores);
}

// Two ranks that train and two that sample: each pair has both cores.
TEST(SharesOfCores, AreSharedByThoseFarApartWhereThereAreTooFew) {
  const std::vector<int> cores{4, 8};
  for (const auto& [index, core] : {std::pair{0, 4}, {1, 8}, {2, 4}, {3, 8}})
    EXPECT_THAT(share_of_cores(cores, index, 4), ElementsAre(core));
  EXPECT_THAT(share_of_cores(cores, 2, 3), ElementsAre(4));
}

TEST(SharesOfCores, AreNoneWhereTheSystemDoesNotTell) { EXPECT_THAT(share_of_cores({}, 1, 2), IsEmpty()); }

}  // namespace
}  // namespace sluice::cli::core_shares_test
