#include "comm/parcels/payload.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/numbers/random.h"
#include "tests/comm/parcel_ranks.h"

namespace sluice::comm::payload_test {
namespace {

using engine::Parcel;
using testing::are_equal;
using testing::column_of;
using testing::random_parcel;

// All bytes, cut at these places.
std::vector<std::byte> bytes_in_parts(const Payload& payload, size_t part) {
  std::vector<std::byte> bytes;
  const size_t size = payload.form().bytes();
  for (size_t begin = 0; begin < size; begin += part)
    for (const auto& piece : payload.pieces(begin, std::min(size, begin + part)))
      bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

std::shared_ptr<std::byte> in_aligned_memory(const std::vector<std::byte>& bytes) {
  std::shared_ptr<std::byte> place(
      static_cast<std::byte*>(std::aligned_alloc(ColumnPlace::kAligned, (bytes.size() / 64 + 1) * 64)), &std::free);
  std::memcpy(place.get(), bytes.data(), bytes.size());
  return place;
}

TEST(Payload, IsTheSameHoweverItIsCut) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed, 1);
    const Parcel parcel = random_parcel(random, 300);
    const Payload payload(parcel);
    const std::vector<std::byte> whole = bytes_in_parts(payload, size_t{1} << 30);
    ASSERT_EQ(whole.size(), payload.form().bytes());
    for (const size_t part : {1, 7, 64, 1000}) ASSERT_EQ(bytes_in_parts(payload, part), whole) << "seed " << seed;
    const ParcelForm form = ParcelForm::from_bytes(payload.form().to_bytes());
    EXPECT_TRUE(are_equal(Parcel{form.header, columns_of(form, in_aligned_memory(whole))}, parcel)) << "seed " << seed;
  }
}

TEST(Payload, TakesNoMoreThanItsCredit) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomStream random(seed, 2);
    const Parcel parcel = random_parcel(random, 300);
    EXPECT_LE(static_cast<int64_t>(Payload(parcel).form().bytes()), engine::credit_bytes(parcel));
  }
}

TEST(Payload, LeavesColumnsWhereTheyAre) {
  const Parcel parcel{.header = {}, .columns = {column_of<int64_t>({1, 2, 3})}};
  const auto pieces = Payload(parcel).pieces(8, 24);
  ASSERT_EQ(pieces.size(), 1U);
  EXPECT_EQ(static_cast<const void*>(pieces[0].data()), &parcel.columns[0].entries<int64_t>()[1]);
}

TEST(Payload, RefusesStringsThatEndWhereTheyCannot) {
  const Payload payload({.header = {}, .columns = {column_of<std::string>({"ab", "cd"})}});
  std::vector<std::byte> bytes = bytes_in_parts(payload, 1000);
  bytes[0] = std::byte{5};  // the end of the first, of 4 letters in all
  EXPECT_THROW(columns_of(payload.form(), in_aligned_memory(bytes)), InternalError);
}

TEST(Payload, RefusesAFormThatIsNone) {
  const std::string form = Payload({.header = "h", .columns = {column_of<float>({1})}}).form().to_bytes();
  for (size_t size = 0; size < form.size(); ++size)
    EXPECT_THROW(ParcelForm::from_bytes(form.substr(0, size)), InternalError) << size;
  EXPECT_THROW(ParcelForm::from_bytes(form + " "), InternalError);
}

}  // namespace
}  // namespace sluice::comm::payload_test
