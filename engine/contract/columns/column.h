#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <vector>

namespace sluice::engine {

enum class DType : uint8_t { kFloat32, kInt64, kUint8, kString };

/// What a column has one entry per.
enum class Extent : uint8_t { kToken, kAction, kSample, kGroup };

const char* name_of(DType dtype);
const char* name_of(Extent extent);

/// Bytes of one entry. For strings a nominal size: what they really hold is counted when they are written.
int64_t entry_bytes(DType dtype);

template <class T>
constexpr DType dtype_of() {
  if constexpr (std::is_same_v<T, float>)
    return DType::kFloat32;
  else if constexpr (std::is_same_v<T, int64_t>)
    return DType::kInt64;
  else if constexpr (std::is_same_v<T, uint8_t>)
    return DType::kUint8;
  else {
    static_assert(std::is_same_v<T, std::string>, "a column holds float, int64_t, uint8_t or std::string");
    return DType::kString;
  }
}

/// Half-open: begin <= i < end.
struct Range {
  size_t begin = 0;
  size_t end = 0;

  size_t size() const { return end - begin; }
};

/// Name and type of a column: what contracts, checks and the plan speak of.
struct ColumnSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  Extent extent = Extent::kToken;

  bool operator==(const ColumnSpec&) const = default;
};

/// "tokens, score", for messages.
std::string column_names(const std::vector<ColumnSpec>& columns);

/// A column as node code names it: `inline constexpr Column<float> kValues{"values", Extent::kAction};`.
template <class T>
struct Column {
  const char* name;
  Extent extent;

  ColumnSpec spec() const { return {name, dtype_of<T>(), extent}; }
};

/// The entries of one column of one micro-batch (or group). A handle: copies share the entries, which nobody changes once the
/// column is sealed (that is, once its writer is done). Lives in host memory.
class ColumnData {
 public:
  ColumnData() = default;

  /// `count` zeros or empty strings.
  ColumnData(DType dtype, size_t count);

  /// `count` entries that lie in memory of somebody else, which `entries` keeps: as those do that came from another process.
  /// They are no strings, and begin where such an entry may.
  ColumnData(DType dtype, size_t count, std::shared_ptr<void> entries);

  /// All parts, back to back. They have one dtype; `parts` is not empty.
  static ColumnData concatenated(const std::vector<ColumnData>& parts);

  /// The entries in `ranges`, back to back, as a column of its own.
  ColumnData selected(const std::vector<Range>& ranges) const;

  bool empty() const { return owner_ == nullptr; }
  DType dtype() const { return dtype_; }
  size_t count() const { return count_; }
  int64_t bytes() const;  // walks the strings of a string column

  template <class T>
  std::span<T> entries() const {
    return {static_cast<T*>(data_), count_};
  }

 private:
  static void copy_entries(const ColumnData& from, Range entries, ColumnData& to, size_t at);

  DType dtype_ = DType::kFloat32;
  size_t count_ = 0;
  void* data_ = nullptr;
  std::shared_ptr<void> owner_;
};

}  // namespace sluice::engine
