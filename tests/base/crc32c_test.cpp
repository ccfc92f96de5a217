#include "base/crc32c.h"

#include <gtest/gtest.h>

#include <string>

namespace sluice {
namespace {

TEST(Crc32c, HasTheCheckValueOfTheCatalogue) { EXPECT_EQ(crc32c("123456789"), 0xE3069283u); }

TEST(Crc32c, OfNothingIsZero) { EXPECT_EQ(crc32c(""), 0u); }

// RFC 3720, appendix B.4, its words read as little-endian.
TEST(Crc32c, AgreesWithTheVectorsOfRfc3720) {
  std::string ascending, descending;
  for (int i = 0; i < 32; ++i) ascending += static_cast<char>(i), descending += static_cast<char>(31 - i);
  EXPECT_EQ(crc32c(std::string(32, '\0')), 0x8A9136AAu);
  EXPECT_EQ(crc32c(std::string(32, '\xFF')), 0x62A8AB43u);
  EXPECT_EQ(crc32c(ascending), 0x46DD794Eu);
  EXPECT_EQ(crc32c(descending), 0x113FDB5Cu);
}

TEST(Crc32c, ContinuesWhereThePartBeforeEnded) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 37);
  for (size_t cut = 0; cut <= text.size(); cut += 7) {
    const std::string_view all = text;
    EXPECT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), crc32c(all)) << cut;
  }
}

}  // namespace
}  // namespace sluice
