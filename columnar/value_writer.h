#pragma once

#include <arrow/array/array_base.h>
#include <arrow/type.h>

#include <cstdint>
#include <memory>

#include "base/json/json.h"
#include "columnar/row_text.h"

namespace sluice::columnar {

/// Writes the values of one array as JSON. Const use from many threads, each with a text of its own.
///
///   strings, numbers, true and false    as they are; dictionaries as what they stand for
///   dates, times, decimals              strings, as Arrow writes them
///   lists, maps                         arrays; a map is one of [key, value]
///   structs                             objects
///   binary data, durations, intervals,  null
///   unions, NaN
///
/// A struct in a list has no members that are null, except "content": every struct of a column has the members of all others,
/// and what a message lacks (tool calls, a name) is null there.
class ValueWriter {
 public:
  virtual ~ValueWriter() = default;

  virtual void write(int64_t row, RowText& text) const = 0;
  virtual bool is_null(int64_t row) const = 0;
};

/// `array` was found whole: every offset and index of it is within its buffers.
std::unique_ptr<ValueWriter> value_writer(std::shared_ptr<arrow::Array> array);

/// What the values of a type are in JSON. Binary for what is written as null.
Json::value_t json_type(const arrow::DataType& type);

/// What after dictionaries and extensions holds the values.
const arrow::DataType& plain_type(const arrow::DataType& type);

}  // namespace sluice::columnar
