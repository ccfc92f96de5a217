#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "models/sample/packed_weights.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::testing {

/// What passes read of them, which are the bits of the weights. Of tiny models.
inline void expect_same(const models::PackedWeights& ours, const models::PackedWeights& theirs) {
  std::vector<float> row(TinyFolder::kHidden), other = row;
  for (const auto& [a, b] :
       {std::pair(&ours.head(), &theirs.head()),
        {&ours.layers()[0].matrices.qkv.matrix, &theirs.layers()[0].matrices.qkv.matrix},
        {&ours.layers()[1].matrices.attention_output.matrix, &theirs.layers()[1].matrices.attention_output.matrix}}) {
    for (int64_t output = 0; output < a->outputs(); ++output) {
      a->row(output, row.data());
      b->row(output, other.data());
      ASSERT_EQ(row, other);
    }
  }
  EXPECT_TRUE(ours.final_norm().equal(theirs.final_norm()));
  EXPECT_TRUE(ours.layers()[1].attention_norm.equal(theirs.layers()[1].attention_norm));
}

}  // namespace sluice::nodes::testing
