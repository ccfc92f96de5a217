#include "engine/column.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"

namespace sluice::engine {

const char* name_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return "float32";
    case DType::kInt64: return "int64";
    case DType::kUint8: return "uint8";
    case DType::kString: return "string";
  }
  return "?";
}

const char* name_of(Extent extent) {
  switch (extent) {
    case Extent::kToken: return "token";
    case Extent::kAction: return "action";
    case Extent::kSample: return "sample";
    case Extent::kGroup: return "group";
  }
  return "?";
}

int64_t entry_bytes(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return sizeof(float);
    case DType::kInt64: return sizeof(int64_t);
    case DType::kUint8: return sizeof(uint8_t);
    case DType::kString: return sizeof(std::string);
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

int64_t ColumnData::bytes() const {
  int64_t total = static_cast<int64_t>(count_) * entry_bytes(dtype_);
  if (dtype_ != DType::kString) return total;
  constexpr size_t kInPlace = 15;  // libstdc++ keeps short strings inside the object
  for (const std::string& text : entries<std::string>()) total += text.capacity() > kInPlace ? static_cast<int64_t>(text.capacity()) + 1 : 0;
  return total;
}

ColumnData ColumnData::concatenated(const std::vector<ColumnData>& parts) {
  SLUICE_CHECK(!parts.empty(), "nothing to concatenate");
  if (parts.size() == 1) return parts.front();
  size_t count = 0;
  for (const ColumnData& part : parts) count += part.count();
  const DType dtype = parts.front().dtype();
  ColumnData whole(dtype, count);
  size_t at = 0;
  for (const ColumnData& part : parts) {
    SLUICE_CHECK(part.dtype() == dtype, "columns of several types cannot be concatenated");
    if (dtype == DType::kString) {
      std::ranges::copy(part.entries<std::string>(), whole.entries<std::string>().begin() + static_cast<std::ptrdiff_t>(at));
    } else if (part.count() > 0) {
      const auto size = static_cast<size_t>(entry_bytes(dtype));
      std::memcpy(static_cast<std::byte*>(whole.data_) + at * size, part.data_, part.count() * size);
    }
    at += part.count();
  }
  return whole;
}

}  // namespace sluice::engine
