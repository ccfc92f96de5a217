#include "models/kernels/quantised_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/zeros.h>
#include <immintrin.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr int64_t kRowAlignment = 16;
constexpr int64_t kRowGrain = 1 << 15;  // weights that a thread is worth waking for
constexpr int kLargestInt8 = 127, kLargestInt4 = 15;

struct RowHeader {
  int32_t bits;
  int32_t group;
  int64_t inputs;
};

int64_t rounded_up(int64_t value, int64_t step) { return (value + step - 1) / step * step; }

#define SLUICE_KERNELS "models/kernels/quantised_rows.inc"
#include "models/kernels/every_instruction_set.inc"

int nearest_code(float weight, float scale, int zero, int smallest, int largest) {
  const float code = std::nearbyint(weight / scale) + static_cast<float>(zero);
  return static_cast<int>(std::clamp(code, static_cast<float>(smallest), static_cast<float>(largest)));
}

/// The parts of a row that is written.
struct RowWriter {
  RowWriter(const QuantisedLayout& of, uint8_t* bytes)
      : layout(of),
        scales(reinterpret_cast<float*>(bytes + of.scales_at)),
        zeros(bytes + of.zeros_at),
        codes(bytes + of.codes_at) {
    const RowHeader header{static_cast<int32_t>(of.bits), static_cast<int32_t>(of.options.group), of.inputs};
    std::memcpy(bytes, &header, sizeof(header));
  }

  void put_int4(int64_t input, int code) {
    uint8_t& both = codes[input / 2];
    both = static_cast<uint8_t>(both | code << 4 * (input % 2));
  }

  const QuantisedLayout& layout;
  float* scales;
  uint8_t* zeros;
  uint8_t* codes;
};

void write_group_of_int8(const float* weights, int64_t group, int64_t first, int64_t count, RowWriter& row) {
  float largest = 0;
  for (int64_t i = 0; i < count; ++i) largest = std::max(largest, std::abs(weights[i]));
  const float scale = largest == 0 ? 1.0f : largest / kLargestInt8;
  row.scales[group] = scale;
  for (int64_t i = 0; i < count; ++i)
    row.codes[first + i] = static_cast<uint8_t>(nearest_code(weights[i], scale, 0, -kLargestInt8, kLargestInt8));
}

void write_group_of_int4(const float* weights, int64_t group, int64_t first, int64_t count, RowWriter& row) {
  float smallest = 0, largest = 0;
  for (int64_t i = 0; i < count; ++i) smallest = std::min(smallest, weights[i]), largest = std::max(largest, weights[i]);
  const float range = largest - smallest, scale = range == 0 ? 1.0f : range / kLargestInt4;
  const int zero = nearest_code(-smallest, scale, 0, 0, kLargestInt4);
  row.scales[group] = scale;
  row.zeros[group] = static_cast<uint8_t>(zero);
  for (int64_t i = 0; i < count; ++i) row.put_int4(first + i, nearest_code(weights[i], scale, zero, 0, kLargestInt4));
}

void write_row(const float* weights, RowWriter row) {
  const int64_t inputs = row.layout.inputs, size = row.layout.options.group;
  const auto write = row.layout.options.kind == Quantisation::kInt4 ? write_group_of_int4 : write_group_of_int8;
  for (int64_t first = 0; first < inputs; first += size)
    write(weights + first, first / size, first, std::min(size, inputs - first), row);
}

}  // namespace

QuantisedLayout::QuantisedLayout(const QuantisationOptions& of, int64_t inputs_of_row)
    : options(of),
      inputs(inputs_of_row),
      groups((inputs + options.group - 1) / options.group),
      bits(options.kind == Quantisation::kInt4 ? 4 : 8),
      scales_at(sizeof(RowHeader)),
      zeros_at(scales_at + groups * static_cast<int64_t>(sizeof(float))),
      codes_at(rounded_up(zeros_at + (options.kind == Quantisation::kInt4 ? groups : 0), kRowAlignment)),
      row_bytes(codes_at + rounded_up(inputs, kBlock) * bits / 8) {}

QuantisedLayout layout_of(const at::Tensor& rows) {
  SLUICE_CHECK(is_quantised(rows) && rows.dim() == 2 && rows.size(0) > 0 && rows.size(1) > int64_t{sizeof(RowHeader)},
               "bytes that are no quantised matrix");
  RowHeader header;
  std::memcpy(&header, rows.const_data_ptr(), sizeof(header));
  const bool known = (header.bits == 4 || header.bits == 8) && header.group > 0 && header.inputs > 0;
  SLUICE_CHECK(known, "bytes that are no quantised matrix");
  const QuantisedLayout layout{{header.bits == 4 ? Quantisation::kInt4 : Quantisation::kInt8, header.group}, header.inputs};
  SLUICE_CHECK(layout.row_bytes == rows.size(1), "a quantised row of another size than it says");
  return layout;
}

int64_t inputs_of(const at::Tensor& weight) { return is_quantised(weight) ? layout_of(weight).inputs : weight.size(1); }

int64_t quantised_bytes(const QuantisationOptions& options, int64_t outputs, int64_t inputs) {
  return outputs * QuantisedLayout{options, inputs}.row_bytes;
}

at::Tensor quantised(const at::Tensor& weight, const QuantisationOptions& options) {
  SLUICE_CHECK(options.any() && options.group > 0 && options.group % QuantisationOptions::kGroupStep == 0,
               "a group that codes cannot be cut into");
  const at::Tensor from = weight.contiguous();
  const QuantisedLayout layout{options, from.size(1)};
  at::Tensor rows = at::zeros({from.size(0), layout.row_bytes}, at::kByte);
  const auto* weights = from.const_data_ptr<float>();
  auto* bytes = rows.mutable_data_ptr<uint8_t>();
  parallel_ranges(from.size(0), kRowGrain / layout.inputs + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) write_row(weights + i * layout.inputs, RowWriter(layout, bytes + i * layout.row_bytes));
  });
  return rows;
}

at::Tensor quantised_of_codes(const at::Tensor& codes, const at::Tensor& scales, const at::Tensor& zeros, int64_t group) {
  const QuantisedLayout layout{{Quantisation::kInt4, group}, codes.size(1)};
  const int64_t outputs = codes.size(0), groups = layout.groups;
  SLUICE_CHECK(group > 0 && group % QuantisationOptions::kGroupStep == 0, "a group that codes cannot be cut into");
  SLUICE_CHECK(scales.numel() == outputs * groups && zeros.numel() == outputs * groups, "a scale and a zero for each group");
  at::Tensor rows = at::zeros({outputs, layout.row_bytes}, at::kByte);
  const auto *code = codes.const_data_ptr<uint8_t>(), *zero = zeros.const_data_ptr<uint8_t>();
  const auto* scale = scales.const_data_ptr<float>();
  for (int64_t output = 0; output < outputs; ++output) {
    RowWriter row(layout, rows.mutable_data_ptr<uint8_t>() + output * layout.row_bytes);
    for (int64_t i = 0; i < groups; ++i) row.scales[i] = *scale++, row.zeros[i] = *zero++;
    for (int64_t i = 0; i < layout.inputs; ++i) row.put_int4(i, *code++);
  }
  return rows;
}

DequantiseRow dequantise_row(InstructionSet set) {
  return with_kernels(set, [](auto kernels) { return static_cast<DequantiseRow>(kernels.dequantise_row); });
}

at::Tensor dequantised(const at::Tensor& rows) {
  const QuantisedLayout layout = layout_of(rows);
  at::Tensor values = at::empty({rows.size(0), layout.inputs}, at::kFloat);
  auto* to = values.mutable_data_ptr<float>();
  const auto* from = rows.const_data_ptr<uint8_t>();
  const DequantiseRow dequantise = dequantise_row();
  parallel_ranges(rows.size(0), kRowGrain / layout.inputs + 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) dequantise(layout, from + i * rows.stride(0), 0, layout.inputs, to + i * layout.inputs);
  });
  return values;
}

}  // namespace sluice::models
