#include "nodes/models/weights/wire_layout.h"

#include <ATen/ops/empty.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace sluice::nodes::wire_layout_test {
namespace {

// Of any size and for any number of owners: what begins within a number would be shifted.
TEST(WireLayout, NoRangeOfAnOwnerBeginsWithinANumber) {
  for (const int64_t megabytes : {1, 9, 17, 35, 50, 64, 200}) {
    const at::Tensor weight = at::empty({megabytes * 250'000 - 1});
    const WireLayout layout({}, models::Head::kLanguageModel, models::Precision::kFloat32, {{"weight", weight}});
    for (int owners = 1; owners <= 9; ++owners) {
      PublicationRanks ranks{.own = 0, .owners = owners, .receivers = {owners}};
      size_t begin = 0, most = 0;
      for (const auto& bucket : publication_layout("actor", layout, ranks, 0).buckets) {
        for (const engine::OwnedBytes& owned : bucket) {
          EXPECT_EQ(owned.range.begin, begin);
          EXPECT_EQ(owned.range.begin % 64, 0u) << megabytes << " MB of " << owners << " owners";
          begin = owned.range.end, most = std::max(most, owned.range.size());
        }
      }
      EXPECT_EQ(begin, layout.bytes());
      EXPECT_LE(most, (size_t{4} << 20) + 64);
    }
  }
}

}  // namespace
}  // namespace sluice::nodes::wire_layout_test
