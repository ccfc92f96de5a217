#include "text/tokenizer/reference_number.h"

#include <gtest/gtest.h>

namespace sluice::text::reference_number_test {
namespace {

// What Tokenizer.from_str(...).to_str() of `tokenizers` 0.23.3 makes of scores.
TEST(ReferenceNumber, HasTheLastBitOfTheReference) {
  EXPECT_EQ(as_reference_reads(-0x1.8ea836b46f838p+3), -0x1.8ea836b46f839p+3);  // -12.458033897794039
  EXPECT_EQ(as_reference_reads(-0x1.2fb9a8f585043p+3), -0x1.2fb9a8f585042p+3);  // -9.491413573770961
  EXPECT_EQ(as_reference_reads(-0x1.35181991eeb92p+4), -0x1.35181991eeb91p+4);  // -19.318383760498882
  EXPECT_EQ(as_reference_reads(-0x1.d009bda74d0b3p+1), -0x1.d009bda74d0b4p+1);  // -3.6252972666644268
}

TEST(ReferenceNumber, MostNumbersStayAsTheyAre) {
  for (const double value : {0.0, -3.0, 0.5, -2.25, 1e-7, -5e-324, 1.2345e-310, 1e22, 123456789012345680.0,
                             -1.7976931348623157e308, 2.2250738585072014e-308, 1.0000000000000002e-300})
    EXPECT_EQ(as_reference_reads(value), value);
}

}  // namespace
}  // namespace sluice::text::reference_number_test
