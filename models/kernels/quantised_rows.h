#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

#include "models/config/quantisation.h"
#include "models/kernels/instruction_set.h"

namespace sluice::models {

// A quantised matrix [outputs, inputs] is a tensor of bytes [outputs, bytes of a row], and no other weight is of bytes. A row
// stands for itself: it says how it is laid out, so rows may be cut off or put together. It never changes, and needs no gradient.
//
// The value of a weight is scale * (code - zero), rounded once to float32, with the scale (float32) and the zero of its group: of
// `group` consecutive inputs of its output; the last group of a row may have fewer.
//
//   int8   codes -127 to 127, zero = 0: symmetric
//   int4   codes 0 to 15, two a byte, zero 0 to 16: what GPTQ (Frantar et al. 2022) and AWQ (Lin et al. 2023) store, as it is
//
// Models compute with these values, rounded to their precision, and so give the bits that they give with a matrix that holds
// them.

/// Where the parts of a row are, in bytes: a header, scales, zeros (int4 alone), and codes in the order of the inputs; of int4
/// the first of two in the lower half of a byte. Codes of whole blocks are there, whatever the inputs are.
struct QuantisedLayout {
  static constexpr int64_t kBlock = QuantisationOptions::kGroupStep;

  QuantisedLayout(const QuantisationOptions& of, int64_t inputs_of_row);

  QuantisationOptions options;
  int64_t inputs, groups;
  int64_t bits;  // of a code
  int64_t scales_at, zeros_at, codes_at, row_bytes;

  bool operator==(const QuantisedLayout&) const = default;
};

/// A row with its parts found. A view.
struct QuantisedRow {
  QuantisedRow(const QuantisedLayout& layout, const uint8_t* row)
      : scales(reinterpret_cast<const float*>(row + layout.scales_at)),
        zeros(layout.options.kind == Quantisation::kInt4 ? row + layout.zeros_at : nullptr),
        codes(row + layout.codes_at) {}

  float zero(int64_t group) const { return zeros ? static_cast<float>(zeros[group]) : 0.0f; }

  const float* scales;
  const uint8_t* zeros;  // null: all 0
  const uint8_t* codes;
};

inline bool is_quantised(const at::Tensor& weight) { return weight.scalar_type() == at::kByte; }

/// As its rows say. Throws InternalError for a tensor that is no quantised matrix.
QuantisedLayout layout_of(const at::Tensor& rows);

/// Inputs of a matrix [outputs, inputs], quantised or not.
int64_t inputs_of(const at::Tensor& weight);

/// What a quantised matrix takes.
int64_t quantised_bytes(const QuantisationOptions& options, int64_t outputs, int64_t inputs);

/// The nearest codes of weight[outputs, inputs], float32 with rows side by side: of int8 the scale is the largest magnitude of
/// the group / 127; of int4 the range from its smallest to its largest weight, or to 0 where that lies outside, / 15, and the
/// zero is the nearest code of 0. A group that is all zero has the scale 1. Split over ATen's threads.
at::Tensor quantised(const at::Tensor& weight, const QuantisationOptions& options);

/// A matrix of int4 of what was found elsewhere: codes[outputs, inputs] and zeros[outputs, groups], bytes, scales[outputs,
/// groups], float32; all side by side.
at::Tensor quantised_of_codes(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& zeros, int64_t group);

/// to[count] = the values of an output from input `first` on, a multiple of QuantisedLayout::kBlock.
using DequantiseRow = void (*)(const QuantisedLayout& layout, const uint8_t* row, int64_t first, int64_t count, float* to);

/// That of a machine; `set` must not be better than best_instruction_set(). All give the same bits.
DequantiseRow dequantise_row(InstructionSet set = best_instruction_set());

/// All values, float32 [outputs, inputs].
at::Tensor dequantised(const at::Tensor& rows);

}  // namespace sluice::models
