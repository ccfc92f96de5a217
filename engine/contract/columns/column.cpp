#include "engine/contract/columns/column.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::engine {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float32";
    case DType::kInt64:
      return "int64";
    case DType::kUint8:
      return "uint8";
    case DType::kString:
      return "string";
  }
  return "?";
}

const char* name_of(Extent extent) {
  switch (extent) {
    case Extent::kToken:
      return "token";
    case Extent::kAction:
      return "action";
    case Extent::kSample:
      return "sample";
    case Extent::kGroup:
      return "group";
  }
  return "?";
}

int64_t entry_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return sizeof(float);
    case DType::kInt64:
      return sizeof(int64_t);
    case DType::kUint8:
      return sizeof(uint8_t);
    case DType::kString:
      return sizeof(std::string);
  }
  return 0;
}

ColumnData::ColumnData(DType dtype, size_t count) : dtype_(dtype), count_(count) {
  if (dtype == DType::kString) {
    auto strings = std::make_shared<std::vector<std::string>>(count);
    data_ = strings->data();
    owner_ = std::move(strings);
    return;
  }
  std::shared_ptr<std::byte[]> bytes(new std::byte[std::max<size_t>(1, count * static_cast<size_t>(entry_bytes(dtype)))]());
  data_ = bytes.get();
  owner_ = std::move(bytes);
}

ColumnData::ColumnData(DType dtype, size_t count, std::shared_ptr<void> entries)
    : dtype_(dtype), count_(count), data_(entries.get()), owner_(std::move(entries)) {
  SLUICE_CHECK(owner_ != nullptr && dtype != DType::kString, "entries that do not lie there as they are");
  const auto place = reinterpret_cast<std::uintptr_t>(data_);
  SLUICE_CHECK(place % static_cast<size_t>(entry_bytes(dtype)) == 0, "entries that begin between two");
}

int64_t ColumnData::bytes() const {
  int64_t total = static_cast<int64_t>(count_) * entry_bytes(dtype_);
  if (dtype_ != DType::kString) return total;
  constexpr size_t kInPlace = 15;  // libstdc++ keeps short strings inside the object
  for (const std::string& text : entries<std::string>())
    total += text.capacity() > kInPlace ? static_cast<int64_t>(text.capacity()) + 1 : 0;
  return total;
}

// Entries of `from` to the place `at` of `to`.
void ColumnData::copy_entries(const ColumnData& from, Range entries, ColumnData& to, size_t at) {
  if (entries.size() == 0) return;
  if (from.dtype_ == DType::kString) {
    const auto strings = from.entries<std::string>().subspan(entries.begin, entries.size());
    std::ranges::copy(strings, to.entries<std::string>().begin() + static_cast<std::ptrdiff_t>(at));
    return;
  }
  const auto size = static_cast<size_t>(entry_bytes(from.dtype_));
  std::memcpy(static_cast<std::byte*>(to.data_) + at * size, static_cast<const std::byte*>(from.data_) + entries.begin * size,
              entries.size() * size);
}

ColumnData ColumnData::concatenated(const std::vector<ColumnData>& parts) {
  SLUICE_CHECK(!parts.empty(), "nothing to concatenate");
  if (parts.size() == 1) return parts.front();
  size_t count = 0;
  for (const ColumnData& part : parts) count += part.count();
  ColumnData whole(parts.front().dtype(), count);
  size_t at = 0;
  for (const ColumnData& part : parts) {
    SLUICE_CHECK(part.dtype() == whole.dtype(), "columns of several types cannot be concatenated");
    copy_entries(part, {0, part.count()}, whole, at);
    at += part.count();
  }
  return whole;
}

ColumnData ColumnData::selected(const std::vector<Range>& ranges) const {
  size_t count = 0;
  for (const Range& range : ranges) count += range.size();
  ColumnData part(dtype_, count);
  size_t at = 0;
  for (const Range& range : ranges) {
    copy_entries(*this, range, part, at);
    at += range.size();
  }
  return part;
}

std::string column_names(const std::vector<ColumnSpec>& columns) {
  std::vector<std::string> names;
  for (const ColumnSpec& column : columns) names.push_back(column.name);
  return join(names, ", ");
}

}  // namespace sluice::engine
