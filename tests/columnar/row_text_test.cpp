#include "columnar/row_text.h"

#include <gmock/gmock.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <string>

#include "base/json/json.h"
#include "data/row_file.h"

namespace sluice::columnar::row_text_test {
namespace {

std::string written(const std::function<void(RowText&)>& write) {
  RowText row;
  std::string text;
  row.begin_row();
  write(row);
  row.move_to(text);
  return text;
}

std::string string_json(const std::string& value) {
  return written([&](RowText& row) { row.append_string(value); });
}

std::string number_json(double value) {
  return written([&](RowText& row) { row.append_number(value); });
}

// Of bytes that are escaped, of several bytes, and plain ones: at every place of a word of eight bytes.
TEST(RowText, AStringIsWhatAParserReads) {
  const std::vector<std::string> pieces{"a",    "\"",   "\\", "\n", "\t", "\x01",       "\x1f",
                                        "\x20", "\x7f", "é",  "€",  "😀",  "plain text "};
  std::mt19937 random(7);
  for (int i = 0; i < 20'000; ++i) {
    std::string value;
    for (size_t length = random() % 24; value.size() < length;) value += pieces[random() % pieces.size()];
    ASSERT_EQ(Json::parse(string_json(value)), Json(value));
  }
}

TEST(RowText, AByteThatIsNoUtf8IsNoticedWhereverItStands) {
  for (size_t at = 0; at < 40; ++at) {
    std::string value(40, 'x');
    value[at] = '\xff';
    RowText row;
    row.begin_row();
    row.append_string("fine: é");
    EXPECT_TRUE(row.is_valid());
    row.append_string(value);
    EXPECT_FALSE(row.is_valid()) << at;
    row.end_row();
    row.begin_row();
    EXPECT_TRUE(row.is_valid());
  }
}

TEST(RowText, ANumberIsTheSameDoubleAndNeverAnInteger) {
  std::mt19937_64 random(7);
  for (int i = 0; i < 20'000; ++i) {
    const double value = std::bit_cast<double>(random());
    if (!std::isfinite(value)) continue;
    const Json read = Json::parse(number_json(value));
    ASSERT_TRUE(read.is_number_float()) << number_json(value);
    ASSERT_EQ(std::bit_cast<uint64_t>(read.get<double>()), std::bit_cast<uint64_t>(value));
  }
  EXPECT_EQ(number_json(1), "1.0");
  EXPECT_EQ(number_json(-0.0), "-0.0");
  EXPECT_EQ(number_json(std::numeric_limits<double>::infinity()), "null");
  EXPECT_EQ(number_json(std::nan("")), "null");
}

TEST(RowText, ARowThatIsLongerThanAnyMayBeTakesNoMoreMemory) {
  RowText row;
  row.begin_row();
  const std::string large(data::kLongestRow / 2, 'x');
  for (int i = 0; i < 100; ++i) row.append_string(large);
  EXPECT_TRUE(row.is_too_long());
  EXPECT_LT(row.size(), 2 * data::kLongestRow);
  row.end_row();
  row.begin_row();
  EXPECT_FALSE(row.is_too_long());
}

}  // namespace
}  // namespace sluice::columnar::row_text_test
