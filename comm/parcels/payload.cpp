#include "comm/parcels/payload.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/numbers/bytes.h"

namespace sluice::comm {
namespace {

using engine::ColumnData;
using engine::DType;

constexpr size_t kMostColumnBytes = size_t{1} << 48;  // more is no column but damage
constexpr std::array<std::byte, ColumnPlace::kAligned> kZeros{};

// One column, which nobody writes to.
engine::Parcel as_column(const ByteParcel& parcel) {
  return {.header = {}, .columns = {ColumnData(DType::kUint8, parcel.size, std::const_pointer_cast<std::byte>(parcel.bytes))}};
}

size_t aligned(size_t place) { return (place + ColumnPlace::kAligned - 1) / ColumnPlace::kAligned * ColumnPlace::kAligned; }

std::vector<uint64_t> ends_of(const ColumnData& column) {
  std::vector<uint64_t> ends;
  if (column.dtype() != DType::kString) return ends;
  uint64_t end = 0;
  for (const std::string& text : column.entries<std::string>()) ends.push_back(end += text.size());
  return ends;
}

std::span<const std::byte> entry_span(const ColumnData& column) {
  switch (column.dtype()) {
    case DType::kFloat32:
      return std::as_bytes(column.entries<float>());
    case DType::kInt64:
      return std::as_bytes(column.entries<int64_t>());
    case DType::kUint8:
      return std::as_bytes(column.entries<uint8_t>());
    case DType::kString:
      break;
  }
  return {};
}

ColumnData strings_of(const ColumnPlace& place, const std::byte* bytes) {
  ColumnData column(DType::kString, place.count);
  const char* const text = reinterpret_cast<const char*>(bytes) + place.begin + place.entries();
  uint64_t begin = 0;
  for (size_t i = 0; i < place.count; ++i) {
    uint64_t end = 0;
    std::memcpy(&end, bytes + place.begin + i * sizeof end, sizeof end);
    SLUICE_CHECK(begin <= end && end <= place.text, "a string that ends where it cannot");
    column.entries<std::string>()[i].assign(text + begin, end - begin);
    begin = end;
  }
  return column;
}

}  // namespace

size_t ColumnPlace::entries() const {
  return count * (dtype == DType::kString ? sizeof(uint64_t) : static_cast<size_t>(engine::entry_bytes(dtype)));
}

std::string ParcelForm::to_bytes() const {
  ByteWriter bytes;
  bytes.text(header);
  bytes.number(uint64_t{columns.size()});
  for (const ColumnPlace& column : columns) {
    bytes.number(static_cast<uint8_t>(column.dtype));
    bytes.number(uint64_t{column.count});
    bytes.number(uint64_t{column.text});
  }
  return bytes.take();
}

ParcelForm ParcelForm::from_bytes(std::string_view text) {
  ByteReader bytes(text);
  ParcelForm form;
  form.header = bytes.text();
  const auto count = bytes.number<uint64_t>();
  for (uint64_t i = 0; i < count; ++i) {
    ColumnPlace column;
    const auto dtype = bytes.number<uint8_t>();
    SLUICE_CHECK(dtype <= static_cast<uint8_t>(DType::kString), "a column of a type that there is not");
    column.dtype = static_cast<DType>(dtype);
    column.count = bytes.number<uint64_t>();
    column.text = bytes.number<uint64_t>();
    SLUICE_CHECK(column.count <= kMostColumnBytes && column.text <= kMostColumnBytes, "a column of too many bytes");
    column.begin = aligned(form.bytes());
    form.columns.push_back(column);
  }
  bytes.expect_end();
  return form;
}

// Gathers what lies between two places of the parcel; the bytes are added in their order.
class Payload::Cut {
 public:
  Cut(size_t begin, size_t end) : begin_(begin), end_(end) {}

  bool reaches(size_t begin, size_t end) const { return begin < end_ && begin_ < end; }

  // `bytes` begin at `place` of the parcel.
  void add(size_t place, std::span<const std::byte> bytes) {
    const size_t first = std::max(begin_, place), last = std::min(end_, place + bytes.size());
    if (first < last) pieces_.push_back(bytes.subspan(first - place, last - first));
  }

  void add_texts(size_t place, const std::vector<uint64_t>& ends, std::span<const std::string> texts) {
    const size_t from = begin_ > place ? begin_ - place : 0;
    const auto first = std::ranges::upper_bound(ends, from);  // the string that has this byte
    for (auto i = static_cast<size_t>(first - ends.begin()); i < texts.size(); ++i) {
      const size_t begin = place + ends[i] - texts[i].size();
      if (begin >= end_) break;
      add(begin, std::as_bytes(std::span(texts[i])));
    }
  }

  std::vector<std::span<const std::byte>> take() { return std::move(pieces_); }

 private:
  const size_t begin_, end_;
  std::vector<std::span<const std::byte>> pieces_;
};

Payload::Payload(engine::Parcel parcel) : parcel_(std::move(parcel)) {
  form_.header = parcel_.header;
  for (const ColumnData& column : parcel_.columns) {
    const std::vector<uint64_t>& ends = text_ends_.emplace_back(ends_of(column));
    form_.columns.push_back({.dtype = column.dtype(),
                             .count = column.count(),
                             .text = ends.empty() ? 0 : static_cast<size_t>(ends.back()),
                             .begin = aligned(form_.bytes())});
  }
}

Payload::Payload(ByteParcel parcel) : Payload(as_column(parcel)) {
  checksums_ = std::move(parcel.checksums);
  taken_ = std::move(parcel.taken);
  block_ = std::move(parcel.block);
  if (!block_) return;
  place_ = static_cast<size_t>(parcel.bytes.get() - block_->memory.data());
  SLUICE_CHECK(place_ + parcel.size <= block_->memory.bytes(), "bytes that are not in their block");
}

std::optional<uint32_t> Payload::known_checksum(uint32_t chunk) const {
  if (!checksums_.empty()) return checksums_.at(chunk);
  if (!taken_) return std::nullopt;
  const auto found = taken_->find(chunk);
  return found == taken_->end() ? std::nullopt : std::optional(found->second);
}

void Payload::remember(uint32_t chunk, uint32_t checksum) const {
  if (taken_) taken_->emplace(chunk, checksum);
}

std::vector<std::span<const std::byte>> Payload::pieces(size_t begin, size_t end) const {
  Cut cut(begin, end);
  size_t filled = 0;  // of the parcel
  for (size_t i = 0; i < form_.columns.size(); ++i) {
    const ColumnPlace& place = form_.columns[i];
    cut.add(filled, std::span(kZeros).first(place.begin - filled));
    filled = place.end();
    if (!cut.reaches(place.begin, place.end())) continue;
    if (place.dtype == DType::kString) {
      cut.add(place.begin, std::as_bytes(std::span(text_ends_[i])));
      cut.add_texts(place.begin + place.entries(), text_ends_[i], parcel_.columns[i].entries<std::string>());
    } else {
      cut.add(place.begin, entry_span(parcel_.columns[i]));
    }
  }
  return cut.take();
}

std::vector<ColumnData> columns_of(const ParcelForm& form, const std::shared_ptr<std::byte>& bytes) {
  std::vector<ColumnData> columns;
  for (const ColumnPlace& place : form.columns) {
    if (place.dtype == DType::kString)
      columns.push_back(strings_of(place, bytes.get()));
    else if (place.count == 0)
      columns.emplace_back(place.dtype, 0);
    else
      columns.emplace_back(place.dtype, place.count, std::shared_ptr<void>(bytes, bytes.get() + place.begin));
  }
  return columns;
}

}  // namespace sluice::comm
