#include "base/numbers/crc32c.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <string_view>

#include "base/numbers/crc32c_folding.h"

namespace sluice::crc32c_test {
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

// The definition, bit by bit.
uint32_t by_division(std::string_view bytes) {
  uint32_t remainder = ~0u;
  for (const char c : bytes) {
    remainder ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) remainder = (remainder >> 1) ^ ((remainder & 1) != 0 ? 0x82F63B78 : 0);
  }
  return ~remainder;
}

// Long ones are worked on in several places at once.
TEST(Crc32c, OfLongBytesOfAnyLengthAndPlaceIsThatOfItsDefinition) {
  std::mt19937_64 random(5);
  std::string bytes(40000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  const std::string_view all = bytes;
  for (const size_t size : {2047, 2048, 6143, 6144, 6145, 6151, 6152, 12287, 12288, 18431, 18432, 24583, 39990}) {
    for (const size_t begin : {0, 1, 7}) EXPECT_EQ(crc32c(all.substr(begin, size)), by_division(all.substr(begin, size))) << size;
  }
  for (int i = 0; i < 50; ++i) {
    const size_t cut = random() % all.size();
    EXPECT_EQ(crc32c(all.substr(cut), crc32c(all.substr(0, cut))), by_division(all)) << cut;
  }
}

// Where the processor can: each number of steps, and what the register had before.
TEST(Crc32c, IsTheSameByFolding) {
  if (!can_fold_crc32c()) GTEST_SKIP() << "this processor cannot";
  std::mt19937_64 random(6);
  std::string bytes(20 * kFoldedAtOnce, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  for (size_t size = kFoldedAtOnce; size <= bytes.size(); size += kFoldedAtOnce) {
    const std::string_view part = std::string_view(bytes).substr(0, size);
    EXPECT_EQ(~fold_crc32c(~0u, part), by_division(part)) << size;
    const std::string_view first = part.substr(0, kFoldedAtOnce), rest = part.substr(kFoldedAtOnce);
    if (rest.empty()) continue;
    EXPECT_EQ(~fold_crc32c(fold_crc32c(~0u, first), rest), by_division(part)) << size;
  }
}

// Whatever begins where, and nothing beside it is written.
TEST(Crc32c, OfACopyIsThatOfTheBytesAndTheyAreCopied) {
  std::mt19937_64 random(7);
  std::string bytes(200'000, '\0');
  for (char& c : bytes) c = static_cast<char>(random());
  const std::string_view all = bytes;
  const std::unique_ptr<char, decltype(&std::free)> memory(static_cast<char*>(std::aligned_alloc(64, 256 * 1024)), &std::free);
  for (const size_t size : {0, 1, 63, 64, 255, 256, 257, 511, 512, 1000, 4096, 65536, 65537, 131072 + 3, 199'000}) {
    for (const size_t from : {0, 1, 64}) {
      for (const size_t to : {64, 65, 128, 200}) {
        std::memset(memory.get(), 1, 256 * 1024);
        EXPECT_EQ(copy_crc32c(all.substr(from, size), memory.get() + to), crc32c(all.substr(from, size)))
            << size << " bytes from " << from << " to " << to;
        EXPECT_EQ(std::string_view(memory.get() + to, size), all.substr(from, size));
        EXPECT_EQ(std::string(memory.get(), to), std::string(to, 1));
        EXPECT_EQ(std::string(memory.get() + to + size, 300), std::string(300, 1));
      }
    }
  }
}

}  // namespace
}  // namespace sluice::crc32c_test
