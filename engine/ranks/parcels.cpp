#include "engine/ranks/parcels.h"

namespace sluice::engine {
namespace {

constexpr int64_t kBetweenColumns = 64;             // at most; see comm/parcels/payload.h
constexpr int64_t kLengthBytes = sizeof(uint64_t);  // of a string, on the way
constexpr DType kText = DType::kString;

int64_t text_bytes(const ColumnData& column) {
  int64_t bytes = 0;
  for (const std::string& text : column.entries<std::string>()) bytes += std::ssize(text) + kLengthBytes;
  return bytes;
}

}  // namespace

std::string text_of(const ParcelKey& key) {
  const std::string number = std::to_string(key.number), of_version = " version " + std::to_string(key.iteration);
  const std::string of_model = " of '" + key.edge + "'";
  switch (key.of) {
    case ParcelOf::kMicroBatch:
      return "micro-batch " + number + " of iteration " + std::to_string(key.iteration) + " on edge '" + key.edge + "'";
    case ParcelOf::kWeights:
      return "piece " + std::to_string(key.piece) + " of bucket " + number + " of" + of_version + of_model;
    case ParcelOf::kLanding:
      return "the memory of place " + number + of_model;
    case ParcelOf::kFree:
      return "word that rank " + number + " has room for" + of_version + of_model;
    case ParcelOf::kShare:
      return "word that rank " + number + " has brought its part of" + of_version + of_model;
    case ParcelOf::kAcknowledged:
      return "word that rank " + number + " has" + of_version + of_model;
    case ParcelOf::kConfirmed:
      return "word of rank " + number + " that all have" + of_version + of_model;
    case ParcelOf::kPass:
      return "part " + number + " of the passes" + of_model;
  }
  return {};
}

int64_t credit_bytes(const Parcel& parcel) {
  int64_t bytes = std::ssize(parcel.header);
  for (const ColumnData& column : parcel.columns)
    bytes += kBetweenColumns + column.bytes() + (column.dtype() == kText ? text_bytes(column) : 0);
  return bytes;
}

}  // namespace sluice::engine
