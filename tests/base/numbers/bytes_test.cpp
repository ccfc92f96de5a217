#include "base/numbers/bytes.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <limits>
#include <string>

namespace sluice::bytes_test {
namespace {

TEST(Bytes, AreReadAsTheyWereWritten) {
  ByteWriter writer;
  writer.number(uint8_t{200});
  writer.number(uint32_t{0x01020304});
  writer.number(std::numeric_limits<int64_t>::min());
  writer.number(-0.0);
  writer.text(std::string("a\0b", 3));
  writer.raw("tail");
  const std::string bytes = writer.take();
  ByteReader reader(bytes);
  EXPECT_EQ(reader.number<uint8_t>(), 200);
  EXPECT_EQ(reader.number<uint32_t>(), 0x01020304u);
  EXPECT_EQ(reader.whole_number(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(std::bit_cast<uint64_t>(reader.real_number()), std::bit_cast<uint64_t>(-0.0));
  EXPECT_EQ(reader.text(), std::string("a\0b", 3));
  EXPECT_THROW(reader.expect_end(), InternalError);
  EXPECT_EQ(reader.rest(), "tail");
  reader.expect_end();
}

TEST(Bytes, HaveTheLowestByteFirst) {
  ByteWriter writer;
  writer.number(uint32_t{0x01020304});
  EXPECT_EQ(writer.take(), "\x04\x03\x02\x01");
}

TEST(Bytes, ThatEndTooEarlyAreRefused) {
  EXPECT_THROW(ByteReader("abc").number<uint32_t>(), InternalError);
  ByteWriter writer;
  writer.number(std::numeric_limits<uint64_t>::max());  // the length of a text
  const std::string bytes = writer.take();
  EXPECT_THROW(ByteReader(bytes).text(), InternalError);
}

}  // namespace
}  // namespace sluice::bytes_test
