#include "columnar/field_proof.h"

#include <arrow/api.h>
#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace sluice::columnar::field_proof_test {
namespace {

using data::ColumnKind;
using testing::ElementsAre;
using testing::IsEmpty;

const auto kMessage = arrow::struct_({arrow::field("role", arrow::utf8()), arrow::field("content", arrow::utf8())});

const arrow::Schema kSchema({arrow::field("text", arrow::utf8()), arrow::field("meta.exact", arrow::int64()),
                             arrow::field("meta", arrow::struct_({arrow::field("answer", arrow::float64()),
                                                                  arrow::field("flag", arrow::boolean())})),
                             arrow::field("messages", arrow::list(kMessage)), arrow::field("numbers", arrow::list(arrow::int8())),
                             arrow::field("bytes", arrow::binary())});

TEST(PlaceOf, ANameIsAColumnOrElseGoesAlongItsDots) {
  EXPECT_THAT(place_of({"text"}, kSchema).path, ElementsAre(0));
  EXPECT_THAT(place_of({"meta.exact"}, kSchema).path, ElementsAre(1));
  EXPECT_THAT(place_of({"meta.answer"}, kSchema).path, ElementsAre(2, 0));
  for (const char* missing : {"txt", "meta.none", "text.a", "meta.answer.a", "none.a"})
    EXPECT_THAT(place_of({missing}, kSchema).path, IsEmpty());
}

TEST(PlaceOf, TheKindIsThatOfTheType) {
  EXPECT_EQ(place_of({"text"}, kSchema).kind, ColumnKind::kText);
  EXPECT_EQ(place_of({"meta.answer"}, kSchema).kind, ColumnKind::kText);
  EXPECT_EQ(place_of({"meta.flag"}, kSchema).kind, ColumnKind::kOther);
  EXPECT_EQ(place_of({"meta"}, kSchema).kind, ColumnKind::kOther);
  EXPECT_EQ(place_of({"messages"}, kSchema).kind, ColumnKind::kMessages);
  EXPECT_EQ(place_of({"numbers"}, kSchema).kind, ColumnKind::kOther);
  EXPECT_EQ(place_of({"bytes"}, kSchema).kind, ColumnKind::kOther);
  EXPECT_EQ(place_of({"none"}, kSchema).kind, ColumnKind::kMissing);
}

TEST(IsWithinLimits, AStructWithANameTwiceIsNot) {
  EXPECT_TRUE(is_within_limits(kSchema));
  const auto twice = arrow::struct_({arrow::field("a", arrow::utf8()), arrow::field("a", arrow::utf8())});
  EXPECT_FALSE(is_within_limits(arrow::Schema({arrow::field("deep", arrow::list(arrow::list(twice)))})));
}

// A batch of the one field "a", by the JSON of its rows.
std::shared_ptr<arrow::RecordBatch> batch_of(const std::shared_ptr<arrow::Array>& array) {
  return arrow::RecordBatch::Make(arrow::schema({arrow::field("a", array->type())}), array->length(), {array});
}

std::string held(const data::ColumnarField& field, const arrow::RecordBatch& batch) {
  const FieldProof proof(field, place_of(field, *batch.schema()), batch);
  std::string rows;
  for (int64_t row = 0; row < batch.num_rows(); ++row) rows += proof.holds(row) ? 'x' : '.';
  return rows;
}

TEST(FieldProof, ATextHoldsWhereItIsNotNullOrMayBe) {
  arrow::StringBuilder texts;
  EXPECT_TRUE(texts.Append("x").ok() && texts.AppendNull().ok() && texts.Append("").ok());
  const auto batch = batch_of(texts.Finish().ValueOrDie());
  EXPECT_EQ(held({"a"}, *batch), "x.x");
  EXPECT_EQ(held({"a", /*may_be_null=*/true}, *batch), "xxx");
  EXPECT_EQ(held({"b"}, *batch), "...");
  EXPECT_EQ(held({"b", true, /*may_be_missing=*/true}, *batch), "xxx");
}

TEST(FieldProof, ANullOnTheWayIsAMissingField) {
  auto answers = std::make_shared<arrow::Int64Builder>();
  arrow::StructBuilder meta(arrow::struct_({arrow::field("b", arrow::int64())}), arrow::default_memory_pool(), {answers});
  EXPECT_TRUE(meta.Append().ok() && answers->Append(1).ok() && meta.AppendNull().ok() && meta.Append().ok() &&
              answers->AppendNull().ok());
  const auto batch = batch_of(meta.Finish().ValueOrDie());
  EXPECT_EQ(held({"a.b"}, *batch), "x..");
  EXPECT_EQ(held({"a.b", /*may_be_null=*/true}, *batch), "x.x");
  EXPECT_EQ(held({"a.b", true, /*may_be_missing=*/true}, *batch), "xxx");
}

TEST(FieldProof, AConversationHoldsWithARoleInEachOfItsMessages) {
  auto role = std::make_shared<arrow::StringBuilder>(), content = std::make_shared<arrow::StringBuilder>();
  auto message = std::make_shared<arrow::StructBuilder>(kMessage, arrow::default_memory_pool(),
                                                        std::vector<std::shared_ptr<arrow::ArrayBuilder>>{role, content});
  arrow::ListBuilder list(arrow::default_memory_pool(), message);
  const auto add = [&](bool with_role) {
    EXPECT_TRUE(message->Append().ok() && (with_role ? role->Append("user") : role->AppendNull()).ok() &&
                content->AppendNull().ok());
  };
  EXPECT_TRUE(list.Append().ok());
  add(true), add(true);
  EXPECT_TRUE(list.Append().ok());
  add(true), add(false);
  EXPECT_TRUE(list.AppendNull().ok());
  EXPECT_TRUE(list.Append().ok());  // empty
  EXPECT_TRUE(list.Append().ok() && message->AppendNull().ok());
  EXPECT_TRUE(list.Append().ok());
  add(true);
  EXPECT_EQ(held({"a"}, *batch_of(list.Finish().ValueOrDie())), "x....x");
}

TEST(FieldProof, ANumberThatIsNoneIsNull) {
  arrow::DoubleBuilder numbers;
  EXPECT_TRUE(numbers.Append(1).ok() && numbers.Append(std::numeric_limits<double>::quiet_NaN()).ok());
  EXPECT_EQ(held({"a"}, *batch_of(numbers.Finish().ValueOrDie())), "x.");
}

}  // namespace
}  // namespace sluice::columnar::field_proof_test
