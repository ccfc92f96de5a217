#include "columnar/field_proof.h"

#include <arrow/array.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "columnar/value_writer.h"

namespace sluice::columnar {
namespace {

using data::ColumnKind;

constexpr int kMostMembers = 1'000, kDeepest = 500;  // a little less than what RowParser takes

// Without dictionaries and extensions, whose nulls are elsewhere.
bool holds_strings(const arrow::DataType& type) {
  return type.id() == arrow::Type::STRING || type.id() == arrow::Type::LARGE_STRING || type.id() == arrow::Type::STRING_VIEW;
}

bool is_struct(const arrow::DataType& type) { return type.id() == arrow::Type::STRUCT; }

bool is_list(const arrow::DataType& type) { return type.id() == arrow::Type::LIST || type.id() == arrow::Type::LARGE_LIST; }

bool is_message(const arrow::DataType& type) {
  if (!is_struct(type)) return false;
  const auto& members = static_cast<const arrow::StructType&>(type);
  const auto role = members.GetFieldByName("role"), content = members.GetFieldByName("content");
  return role != nullptr && holds_strings(*role->type()) &&
         (content == nullptr || holds_strings(*content->type()) || is_list(*content->type()));
}

ColumnKind kind_of(const arrow::DataType& type) {
  const Json::value_t json = json_type(type);
  if (json == Json::value_t::string || json == Json::value_t::number_integer || json == Json::value_t::number_float)
    return ColumnKind::kText;
  return is_list(type) && is_message(*type.field(0)->type()) ? ColumnKind::kMessages : ColumnKind::kOther;
}

FieldPlace place_in(const arrow::Schema& schema, std::vector<int> path) {
  const arrow::Field* field = schema.field(path.front()).get();
  for (size_t i = 1; i < path.size(); ++i) field = field->type()->field(path[i]).get();
  return {std::move(path), kind_of(*field->type())};
}

// Of the values of a list.
template <class Lists>
std::pair<int64_t, int64_t> range_in(const Lists& lists, int64_t row) {
  return {lists.value_offset(row), lists.value_offset(row + 1)};
}

std::pair<int64_t, int64_t> range_of(const arrow::Array& lists, int64_t row) {
  return lists.type_id() == arrow::Type::LIST ? range_in(static_cast<const arrow::ListArray&>(lists), row)
                                              : range_in(static_cast<const arrow::LargeListArray&>(lists), row);
}

std::vector<std::string> parts_of(const std::string& name) {
  std::vector<std::string> parts(1);
  for (const char c : name) c == '.' ? static_cast<void>(parts.emplace_back()) : parts.back().push_back(c);
  return parts;
}

bool type_is_within_limits(const arrow::DataType& type, int depth) {
  const arrow::DataType& plain = plain_type(type);
  std::set<std::string> names;
  if (depth > kDeepest || (is_struct(plain) && plain.num_fields() > kMostMembers)) return false;
  for (const auto& field : plain.fields()) {
    if (is_struct(plain) && !names.insert(field->name()).second) return false;
    if (!type_is_within_limits(*field->type(), depth + 1)) return false;
  }
  return true;
}

}  // namespace

bool is_within_limits(const arrow::Schema& schema) {
  return std::ranges::all_of(schema.fields(), [](const auto& field) { return type_is_within_limits(*field->type(), 2); });
}

FieldPlace place_of(const data::ColumnarField& field, const arrow::Schema& schema) {
  if (const int index = schema.GetFieldIndex(field.name); index >= 0) return place_in(schema, {index});
  const std::vector<std::string> parts = parts_of(field.name);
  std::vector<int> path{schema.GetFieldIndex(parts.front())};
  const arrow::DataType* type = path.front() < 0 ? nullptr : schema.field(path.front())->type().get();
  for (size_t i = 1; i < parts.size() && type != nullptr; ++i) {
    const int index = is_struct(*type) ? static_cast<const arrow::StructType&>(*type).GetFieldIndex(parts[i]) : -1;
    type = index < 0 ? nullptr : type->field(index)->type().get();
    path.push_back(index);
  }
  return type == nullptr ? FieldPlace{} : place_in(schema, std::move(path));
}

FieldProof::FieldProof(const data::ColumnarField& field, const FieldPlace& place, const arrow::RecordBatch& batch)
    : may_be_null_(field.may_be_null), may_be_missing_(field.may_be_missing), kind_(place.kind) {
  for (size_t i = 0; i < place.path.size(); ++i) {
    if (i > 0) parents_.push_back(array_);
    array_ = i == 0 ? batch.column(place.path[i]) : static_cast<const arrow::StructArray&>(*array_).field(place.path[i]);
  }
  if (array_ != nullptr) values_ = value_writer(array_);
  if (kind_ != ColumnKind::kMessages) return;
  messages_ = array_->type_id() == arrow::Type::LIST ? static_cast<const arrow::ListArray&>(*array_).values()
                                                     : static_cast<const arrow::LargeListArray&>(*array_).values();
  roles_ = static_cast<const arrow::StructArray&>(*messages_).GetFieldByName("role");
}

bool FieldProof::holds(int64_t row) const {
  if (kind_ == ColumnKind::kMissing) return may_be_missing_;
  if (kind_ == ColumnKind::kOther) return false;
  for (const auto& parent : parents_) {
    if (parent->IsNull(row)) return may_be_missing_;
  }
  if (values_->is_null(row)) return may_be_null_;
  return kind_ == ColumnKind::kMessages ? holds_messages(row) : true;
}

bool FieldProof::holds_messages(int64_t row) const {
  const auto [begin, end] = range_of(*array_, row);
  for (int64_t i = begin; i < end; ++i) {
    if (messages_->IsNull(i) || roles_->IsNull(i)) return false;
  }
  return begin < end;
}

}  // namespace sluice::columnar
