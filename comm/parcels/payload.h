#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "comm/parcels/byte_parcel.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// Where a column is in the bytes of its parcel. Entries lie there as they are in memory; of strings first where each ends in the
/// text after them, 8 bytes each, then that text. Every column begins at a multiple of kAligned.
struct ColumnPlace {
  static constexpr size_t kAligned = 64;  // a cache line, and what vectors of the processor like

  engine::DType dtype = engine::DType::kFloat32;
  size_t count = 0;
  size_t text = 0;   // bytes of all strings
  size_t begin = 0;  // in the bytes of the parcel

  size_t entries() const;  // bytes, or those of the ends of strings
  size_t end() const { return begin + entries() + text; }
};

/// What a receiver must know of a parcel beside its bytes. A plain value.
struct ParcelForm {
  std::string header;
  std::vector<ColumnPlace> columns;

  size_t bytes() const { return columns.empty() ? 0 : columns.back().end(); }

  std::string to_bytes() const;

  /// Throws InternalError on what to_bytes() does not write.
  static ParcelForm from_bytes(std::string_view bytes);
};

/// A parcel on its way out: its bytes, of which nothing is copied. It keeps the columns. Not changed once it is made.
class Payload {
 public:
  explicit Payload(engine::Parcel parcel);
  explicit Payload(ByteParcel parcel);

  const ParcelForm& form() const { return form_; }

  /// The bytes from `begin` up to `end`, piece by piece, where they lie.
  std::vector<std::span<const std::byte>> pieces(size_t begin, size_t end) const;

  /// The block that its bytes lie in, as they are, and where they begin there; null: in none.
  const std::shared_ptr<Block>& block() const { return block_; }
  size_t place() const { return place_; }

  /// Of this chunk, where whoever had the bytes first has taken it, or remember() was called for it.
  std::optional<uint32_t> known_checksum(uint32_t chunk) const;
  void remember(uint32_t chunk, uint32_t checksum) const;

 private:
  class Cut;

  const engine::Parcel parcel_;
  ParcelForm form_;
  std::vector<uint32_t> checksums_;        // empty: not known
  std::shared_ptr<ChunkChecksums> taken_;  // null: nobody asks again
  std::shared_ptr<Block> block_;
  size_t place_ = 0;
  std::vector<std::vector<uint64_t>> text_ends_;  // by column; empty where it has no strings
};

/// The columns of a parcel that has come to `bytes`, where they stay and are kept. Strings are copied. Throws InternalError where
/// strings end where they cannot.
std::vector<engine::ColumnData> columns_of(const ParcelForm& form, const std::shared_ptr<std::byte>& bytes);

}  // namespace sluice::comm
