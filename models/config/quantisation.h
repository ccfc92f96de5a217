#pragma once

#include <array>
#include <cstdint>
#include <utility>

namespace sluice::models {

/// How the matrices of a model's layers are held while nobody trains them: as the precision says, or as codes of 8 or 4 bits
/// (models/kernels/quantised_rows.h). Embedding, head, norms, biases and the routers of a mixture stay as they are.
enum class Quantisation { kNone, kInt8, kInt4 };

constexpr std::array<std::pair<Quantisation, const char*>, 3> enum_names(Quantisation) {
  return {{{Quantisation::kNone, "none"}, {Quantisation::kInt8, "int8"}, {Quantisation::kInt4, "int4"}}};
}

struct QuantisationOptions {
  static constexpr int64_t kGroupStep = 32;  // a group is a multiple of so many inputs

  Quantisation kind = Quantisation::kNone;
  int64_t group = 128;  // consecutive inputs of an output that share a scale

  bool any() const { return kind != Quantisation::kNone; }
  bool operator==(const QuantisationOptions&) const = default;
};

}  // namespace sluice::models
