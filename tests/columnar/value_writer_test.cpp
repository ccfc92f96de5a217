#include "columnar/value_writer.h"

#include <arrow/api.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sluice::columnar::value_writer_test {
namespace {

using testing::ElementsAre;

template <class Builder>
std::shared_ptr<arrow::Array> finished(Builder& builder) {
  return builder.Finish().ValueOrDie();
}

std::vector<std::string> json_of(const std::shared_ptr<arrow::Array>& array) {
  const auto writer = value_writer(array);
  std::vector<std::string> values;
  for (int64_t row = 0; row < array->length(); ++row) {
    RowText text;
    std::string value;
    text.begin_row();
    writer->write(row, text);
    text.move_to(value);
    EXPECT_EQ(writer->is_null(row), value == "null");
    values.push_back(value);
  }
  return values;
}

template <class Builder, class T>
std::shared_ptr<arrow::Array> array_of(const std::vector<T>& values, std::shared_ptr<arrow::DataType> type) {
  Builder builder(std::move(type), arrow::default_memory_pool());
  for (const T& value : values) EXPECT_TRUE(builder.Append(value).ok());
  EXPECT_TRUE(builder.AppendNull().ok());
  return finished(builder);
}

std::shared_ptr<arrow::Array> strings(const std::vector<std::string>& values) {
  return array_of<arrow::StringBuilder>(values, arrow::utf8());
}

TEST(ValueWriter, NumbersAreWrittenWhole) {
  EXPECT_THAT(json_of(array_of<arrow::Int8Builder>(std::vector<int8_t>{-128, 127}, arrow::int8())),
              ElementsAre("-128", "127", "null"));
  EXPECT_THAT(json_of(array_of<arrow::UInt64Builder>(std::vector<uint64_t>{UINT64_MAX}, arrow::uint64())),
              ElementsAre("18446744073709551615", "null"));
  EXPECT_THAT(json_of(array_of<arrow::DoubleBuilder>(std::vector<double>{0.1, 2}, arrow::float64())),
              ElementsAre("0.1", "2.0", "null"));
  EXPECT_THAT(json_of(array_of<arrow::FloatBuilder>(std::vector<float>{0.5F}, arrow::float32())), ElementsAre("0.5", "null"));
  EXPECT_THAT(json_of(array_of<arrow::HalfFloatBuilder>(std::vector<uint16_t>{0x3C00, 0x7E00}, arrow::float16())),
              ElementsAre("1.0", "null", "null"));  // the second is not a number
  EXPECT_THAT(json_of(array_of<arrow::BooleanBuilder>(std::vector<bool>{true, false}, arrow::boolean())),
              ElementsAre("true", "false", "null"));
}

TEST(ValueWriter, StringsOfEveryWidthAreTheSame) {
  const std::vector<std::string> values{"a \"b\"", ""};
  const auto expected = ElementsAre(R"("a \"b\"")", "\"\"", "null");
  EXPECT_THAT(json_of(strings(values)), expected);
  EXPECT_THAT(json_of(array_of<arrow::LargeStringBuilder>(values, arrow::large_utf8())), expected);
  EXPECT_THAT(json_of(array_of<arrow::StringViewBuilder>(values, arrow::utf8_view())), expected);
}

TEST(ValueWriter, DatesAndTimesAreStringsAndBinaryDataIsNull) {
  EXPECT_THAT(json_of(array_of<arrow::Date32Builder>(std::vector<int32_t>{19723}, arrow::date32())),
              ElementsAre("\"2024-01-01\"", "null"));
  EXPECT_THAT(
      json_of(array_of<arrow::TimestampBuilder>(std::vector<int64_t>{1'704'067'200}, arrow::timestamp(arrow::TimeUnit::SECOND))),
      ElementsAre("\"2024-01-01 00:00:00\"", "null"));
  EXPECT_THAT(json_of(array_of<arrow::BinaryBuilder>(std::vector<std::string>{"x"}, arrow::binary())),
              ElementsAre("null", "null"));
}

TEST(ValueWriter, DictionariesAreWhatTheyStandFor) {
  arrow::StringDictionaryBuilder builder;
  for (const char* value : {"b", "a", "b"}) EXPECT_TRUE(builder.Append(value).ok());
  EXPECT_TRUE(builder.AppendNull().ok());
  EXPECT_THAT(json_of(finished(builder)), ElementsAre("\"b\"", "\"a\"", "\"b\"", "null"));
}

// A slice begins in the middle of its buffers, of those of its members too.
TEST(ValueWriter, StructsKeepNullsInListsTheyAreLeftOut) {
  const auto people =
      arrow::StructArray::Make({strings({"x", "y"}), strings({"1", "2"})}, std::vector<std::string>{"content", "name"})
          .ValueOrDie();
  EXPECT_THAT(json_of(people),
              ElementsAre(R"({"content":"x","name":"1"})", R"({"content":"y","name":"2"})", R"({"content":null,"name":null})"));
  arrow::Int32Builder offsets;
  EXPECT_TRUE(offsets.AppendValues({0, 0, 3}).ok());
  const std::shared_ptr<arrow::Array> list = arrow::ListArray::FromArrays(*finished(offsets), *people).ValueOrDie();
  EXPECT_THAT(json_of(list), ElementsAre("[]", R"([{"content":"x","name":"1"},{"content":"y","name":"2"},{"content":null}])"));
  EXPECT_THAT(json_of(people->Slice(1)), ElementsAre(R"({"content":"y","name":"2"})", R"({"content":null,"name":null})"));
  EXPECT_THAT(json_of(list->Slice(1)),
              ElementsAre(R"([{"content":"x","name":"1"},{"content":"y","name":"2"},{"content":null}])"));
}

TEST(ValueWriter, AMapIsAListOfPairs) {
  auto keys = std::make_shared<arrow::StringBuilder>();
  auto items = std::make_shared<arrow::Int64Builder>();
  arrow::MapBuilder builder(arrow::default_memory_pool(), keys, items);
  EXPECT_TRUE(builder.Append().ok() && keys->Append("a").ok() && items->Append(1).ok() && keys->Append("b").ok() &&
              items->AppendNull().ok());
  EXPECT_THAT(json_of(finished(builder)), ElementsAre(R"([["a",1],["b",null]])"));
}

TEST(ValueWriter, ATypeSaysWhatItsValuesAre) {
  EXPECT_EQ(json_type(*arrow::dictionary(arrow::int32(), arrow::utf8())), Json::value_t::string);
  EXPECT_EQ(json_type(*arrow::decimal128(9, 2)), Json::value_t::string);
  EXPECT_EQ(json_type(*arrow::fixed_size_list(arrow::int8(), 3)), Json::value_t::array);
  EXPECT_EQ(json_type(*arrow::fixed_size_binary(3)), Json::value_t::binary);
  EXPECT_EQ(json_type(*arrow::null()), Json::value_t::null);
}

}  // namespace
}  // namespace sluice::columnar::value_writer_test
