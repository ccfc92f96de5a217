#include "columnar/value_writer.h"

#include <arrow/array.h>
#include <arrow/extension_type.h>
#include <arrow/scalar.h>
#include <arrow/util/float16.h>

#include <array>
#include <charconv>
#include <cmath>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::columnar {
namespace {

// What is common to all: the array, and its nulls.
template <class Array>
class ArrayWriter : public ValueWriter {
 public:
  explicit ArrayWriter(const std::shared_ptr<arrow::Array>& array) : array_(std::static_pointer_cast<Array>(array)) {}

  bool is_null(int64_t row) const override { return array_->IsNull(row); }
  void write(int64_t row, RowText& text) const final {
    if (is_null(row)) return text.append("null");
    write_value(row, text);
  }

 protected:
  virtual void write_value(int64_t row, RowText& text) const = 0;
  const Array& array() const { return *array_; }

 private:
  std::shared_ptr<Array> array_;
};

class NullWriter final : public ValueWriter {
 public:
  void write(int64_t, RowText& text) const override { text.append("null"); }
  bool is_null(int64_t) const override { return true; }
};

class BooleanWriter final : public ArrayWriter<arrow::BooleanArray> {
  using ArrayWriter::ArrayWriter;
  void write_value(int64_t row, RowText& text) const override { text.append(array().Value(row) ? "true" : "false"); }
};

template <class Array>
class IntegerWriter final : public ArrayWriter<Array> {
  using ArrayWriter<Array>::ArrayWriter;
  void write_value(int64_t row, RowText& text) const override {
    std::array<char, 24> digits{};
    const char* const end = std::to_chars(digits.data(), digits.data() + digits.size(), this->array().Value(row)).ptr;
    text.append(std::string_view(digits.data(), static_cast<size_t>(end - digits.data())));
  }
};

template <class Array>
class RealWriter final : public ArrayWriter<Array> {
  using ArrayWriter<Array>::ArrayWriter;
  bool is_null(int64_t row) const override { return ArrayWriter<Array>::is_null(row) || !std::isfinite(value(row)); }
  void write_value(int64_t row, RowText& text) const override { text.append_number(value(row)); }
  double value(int64_t row) const {
    if constexpr (std::is_same_v<Array, arrow::HalfFloatArray>)
      return arrow::util::Float16::FromBits(this->array().Value(row)).ToDouble();
    else
      return static_cast<double>(this->array().Value(row));
  }
};

template <class Array>
class StringWriter final : public ArrayWriter<Array> {
  using ArrayWriter<Array>::ArrayWriter;
  void write_value(int64_t row, RowText& text) const override { text.append_string(this->array().GetView(row)); }
};

// Dates, times and decimals: rare enough for a scalar each.
class ScalarWriter final : public ArrayWriter<arrow::Array> {
  using ArrayWriter::ArrayWriter;
  void write_value(int64_t row, RowText& text) const override {
    const auto scalar = array().GetScalar(row);
    SLUICE_CHECK(scalar.ok(), "a row of an array that was found whole");
    text.append_string((*scalar)->ToString());
  }
};

std::unique_ptr<ValueWriter> writer_of(const std::shared_ptr<arrow::Array>& array, bool in_list);

template <class Array>
class ListWriter final : public ArrayWriter<Array> {
 public:
  explicit ListWriter(const std::shared_ptr<arrow::Array>& array)
      : ArrayWriter<Array>(array), values_(writer_of(this->array().values(), /*in_list=*/true)) {}

 private:
  void write_value(int64_t row, RowText& text) const override {
    const int64_t begin = this->array().value_offset(row), end = begin + this->array().value_length(row);
    text.append('[');
    for (int64_t i = begin; i < end && !text.is_too_long(); ++i) {
      if (i > begin) text.append(',');
      values_->write(i, text);
    }
    text.append(']');
  }

  std::unique_ptr<ValueWriter> values_;
};

class MapWriter final : public ArrayWriter<arrow::MapArray> {
 public:
  explicit MapWriter(const std::shared_ptr<arrow::Array>& array)
      : ArrayWriter(array), keys_(writer_of(this->array().keys(), true)), items_(writer_of(this->array().items(), true)) {}

 private:
  void write_value(int64_t row, RowText& text) const override {
    const int64_t begin = array().value_offset(row), end = begin + array().value_length(row);
    text.append('[');
    for (int64_t i = begin; i < end && !text.is_too_long(); ++i) {
      text.append(i > begin ? ",[" : "[");
      keys_->write(i, text);
      text.append(',');
      items_->write(i, text);
      text.append(']');
    }
    text.append(']');
  }

  std::unique_ptr<ValueWriter> keys_, items_;
};

class StructWriter final : public ArrayWriter<arrow::StructArray> {
 public:
  StructWriter(const std::shared_ptr<arrow::Array>& array, bool in_list) : ArrayWriter(array), in_list_(in_list) {
    for (int i = 0; i < this->array().num_fields(); ++i)
      members_.emplace_back(this->array().struct_type()->field(i)->name(), writer_of(this->array().field(i), in_list));
  }

 private:
  void write_value(int64_t row, RowText& text) const override {
    char before = '{';
    for (const auto& [name, member] : members_) {
      if (in_list_ && name != "content" && member->is_null(row)) continue;
      text.append(std::exchange(before, ','));
      text.append_string(name);
      text.append(':');
      member->write(row, text);
    }
    text.append(before == '{' ? "{}" : "}");
  }

  std::vector<std::pair<std::string, std::unique_ptr<ValueWriter>>> members_;
  bool in_list_;
};

class DictionaryWriter final : public ArrayWriter<arrow::DictionaryArray> {
 public:
  DictionaryWriter(const std::shared_ptr<arrow::Array>& array, bool in_list)
      : ArrayWriter(array), values_(writer_of(this->array().dictionary(), in_list)) {}

  bool is_null(int64_t row) const override { return ArrayWriter::is_null(row) || values_->is_null(array().GetValueIndex(row)); }

 private:
  void write_value(int64_t row, RowText& text) const override { values_->write(array().GetValueIndex(row), text); }

  std::unique_ptr<ValueWriter> values_;
};

std::unique_ptr<ValueWriter> number_writer(const std::shared_ptr<arrow::Array>& array) {
  switch (array->type_id()) {
    case arrow::Type::UINT8:
      return std::make_unique<IntegerWriter<arrow::UInt8Array>>(array);
    case arrow::Type::INT8:
      return std::make_unique<IntegerWriter<arrow::Int8Array>>(array);
    case arrow::Type::UINT16:
      return std::make_unique<IntegerWriter<arrow::UInt16Array>>(array);
    case arrow::Type::INT16:
      return std::make_unique<IntegerWriter<arrow::Int16Array>>(array);
    case arrow::Type::UINT32:
      return std::make_unique<IntegerWriter<arrow::UInt32Array>>(array);
    case arrow::Type::INT32:
      return std::make_unique<IntegerWriter<arrow::Int32Array>>(array);
    case arrow::Type::UINT64:
      return std::make_unique<IntegerWriter<arrow::UInt64Array>>(array);
    case arrow::Type::INT64:
      return std::make_unique<IntegerWriter<arrow::Int64Array>>(array);
    case arrow::Type::HALF_FLOAT:
      return std::make_unique<RealWriter<arrow::HalfFloatArray>>(array);
    case arrow::Type::FLOAT:
      return std::make_unique<RealWriter<arrow::FloatArray>>(array);
    default:
      return std::make_unique<RealWriter<arrow::DoubleArray>>(array);
  }
}

std::unique_ptr<ValueWriter> list_writer(const std::shared_ptr<arrow::Array>& array) {
  switch (array->type_id()) {
    case arrow::Type::LIST:
      return std::make_unique<ListWriter<arrow::ListArray>>(array);
    case arrow::Type::LARGE_LIST:
      return std::make_unique<ListWriter<arrow::LargeListArray>>(array);
    case arrow::Type::FIXED_SIZE_LIST:
      return std::make_unique<ListWriter<arrow::FixedSizeListArray>>(array);
    case arrow::Type::LIST_VIEW:
      return std::make_unique<ListWriter<arrow::ListViewArray>>(array);
    case arrow::Type::LARGE_LIST_VIEW:
      return std::make_unique<ListWriter<arrow::LargeListViewArray>>(array);
    default:
      return std::make_unique<MapWriter>(array);
  }
}

std::unique_ptr<ValueWriter> string_writer(const std::shared_ptr<arrow::Array>& array) {
  switch (array->type_id()) {
    case arrow::Type::STRING:
      return std::make_unique<StringWriter<arrow::StringArray>>(array);
    case arrow::Type::LARGE_STRING:
      return std::make_unique<StringWriter<arrow::LargeStringArray>>(array);
    case arrow::Type::STRING_VIEW:
      return std::make_unique<StringWriter<arrow::StringViewArray>>(array);
    default:
      return std::make_unique<ScalarWriter>(array);
  }
}

std::unique_ptr<ValueWriter> writer_of(const std::shared_ptr<arrow::Array>& array, bool in_list) {
  if (array->type_id() == arrow::Type::DICTIONARY) return std::make_unique<DictionaryWriter>(array, in_list);
  if (array->type_id() == arrow::Type::EXTENSION)
    return writer_of(static_cast<const arrow::ExtensionArray&>(*array).storage(), in_list);
  switch (json_type(*array->type())) {
    case Json::value_t::boolean:
      return std::make_unique<BooleanWriter>(array);
    case Json::value_t::number_integer:
    case Json::value_t::number_float:
      return number_writer(array);
    case Json::value_t::string:
      return string_writer(array);
    case Json::value_t::array:
      return list_writer(array);
    case Json::value_t::object:
      return std::make_unique<StructWriter>(array, in_list);
    default:
      return std::make_unique<NullWriter>();
  }
}

}  // namespace

std::unique_ptr<ValueWriter> value_writer(std::shared_ptr<arrow::Array> array) { return writer_of(array, /*in_list=*/false); }

const arrow::DataType& plain_type(const arrow::DataType& type) {
  if (type.id() == arrow::Type::DICTIONARY) return plain_type(*static_cast<const arrow::DictionaryType&>(type).value_type());
  if (type.id() == arrow::Type::EXTENSION) return plain_type(*static_cast<const arrow::ExtensionType&>(type).storage_type());
  return type;
}

Json::value_t json_type(const arrow::DataType& type) {
  const arrow::DataType& plain = plain_type(type);
  switch (plain.id()) {
    case arrow::Type::NA:
      return Json::value_t::null;
    case arrow::Type::BOOL:
      return Json::value_t::boolean;
    case arrow::Type::STRING:
    case arrow::Type::LARGE_STRING:
    case arrow::Type::STRING_VIEW:
      return Json::value_t::string;
    case arrow::Type::LIST:
    case arrow::Type::LARGE_LIST:
    case arrow::Type::FIXED_SIZE_LIST:
    case arrow::Type::LIST_VIEW:
    case arrow::Type::LARGE_LIST_VIEW:
    case arrow::Type::MAP:
      return Json::value_t::array;
    case arrow::Type::STRUCT:
      return Json::value_t::object;
    default:
      break;
  }
  if (arrow::is_integer(plain.id())) return Json::value_t::number_integer;
  if (arrow::is_floating(plain.id())) return Json::value_t::number_float;
  const bool is_written = arrow::is_temporal(plain.id()) || arrow::is_decimal(plain.id());
  return is_written ? Json::value_t::string : Json::value_t::binary;
}

}  // namespace sluice::columnar
