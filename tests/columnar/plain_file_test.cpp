#include "columnar/plain_file.h"

#include <arrow/buffer.h>

#include <gmock/gmock.h>
#include <string>

#include "columnar/batches.h"
#include "tests/temporary_folder.h"

namespace sluice::columnar::plain_file_test {
namespace {

constexpr int64_t kFarTooMuch = int64_t{1} << 30;

// Lengths that a damaged file names are asked for as they are.
TEST(PlainFile, WhatIsAskedForBeyondTheEndTakesNoMemory) {
  const TemporaryFolder folder;
  arrow::ProxyMemoryPool pool(arrow::system_memory_pool());
  const auto file = PlainFile::open(folder.write("rows.arrow", "0123456789"), &pool).ValueOrDie();

  EXPECT_EQ(file->Read(kFarTooMuch).ValueOrDie()->ToString(), "0123456789");
  EXPECT_EQ(file->Read(kFarTooMuch).ValueOrDie()->size(), 0);
  EXPECT_EQ(file->ReadAt(4, kFarTooMuch).ValueOrDie()->ToString(), "456789");
  EXPECT_EQ(file->ReadAt(4, 3).ValueOrDie()->ToString(), "456");
  EXPECT_EQ(file->ReadAt(40, kFarTooMuch).ValueOrDie()->size(), 0);
  EXPECT_TRUE(file->ReadAt(4, kFarTooMuch, /*may_be_short=*/false).status().IsIOError());
  EXPECT_LT(pool.max_memory(), 4096);
}

// A stream's first message says how long it is in four bytes, which may be those of any text.
TEST(PlainFile, ALongMessageOfAShortStreamIsRefused) {
  const TemporaryFolder folder;
  arrow::ProxyMemoryPool pool(arrow::system_memory_pool());
  const auto opened =
      open_arrow(folder.write("rows.arrow", "\xff\xff\xff\xff{\"prompt\": \"2+2\"}\n"), /*is_stream=*/true, &pool);
  ASSERT_FALSE(opened.ok());
  EXPECT_THAT(opened.status().message(), testing::HasSubstr("Expected to read"));
  EXPECT_LT(pool.max_memory(), 4096);
}

}  // namespace
}  // namespace sluice::columnar::plain_file_test
