#include "models/layers/packed_linear.h"

#include <ATen/ops/empty.h>

#include <algorithm>

#include "base/error.h"
#include "models/kernels/quantised_rows.h"
#include "models/layers/adapter_products.h"
#include "models/memory/grown_buffer.h"

namespace sluice::models {
namespace {

constexpr const char* kOtherLinear = "weights of another shape are packed into the memory of these";

using Linears = std::span<const LinearWeights* const>;

// What all layers that are there are together.
struct StackShape {
  explicit StackShape(Linears layers) {
    for (const LinearWeights* layer : layers) {
      if (!layer->weight.defined()) continue;
      outputs += layer->weight.size(0);
      inputs = inputs_of(layer->weight);
      biased = layer->bias.defined();
      stays_quantised = is_quantised(layer->weight);
    }
  }

  int64_t outputs = 0, inputs = 0;
  bool biased = false, stays_quantised = false;
};

void pack_adapter(const Adapter& adapter, int64_t first, PackedAdapter& to) {
  const at::Tensor a = adapter.a.detach().contiguous(), b = adapter.b.detach().contiguous();
  if (to.a.empty()) {
    to.a = PackedMatrix(Precision::kFloat32, a.size(0), a.size(1));
    to.b = PackedMatrix(Precision::kFloat32, b.size(0), b.size(1));
  }
  SLUICE_CHECK(to.a.outputs() == a.size(0) && to.a.inputs() == a.size(1) && to.b.outputs() == b.size(0), kOtherLinear);
  to.a.put(0, a);
  to.b.put(0, b);
  to.first = first;
  to.scale = static_cast<float>(adapter.scale);
}

// The matrix by reference, and its adapters beside it.
void pack_quantised(Linears layers, Precision precision, PackedLinear& to) {
  std::vector<at::Tensor> rows;
  size_t adapters = 0;
  int64_t first = 0;
  for (const LinearWeights* layer : layers) {
    if (!layer->weight.defined()) continue;
    rows.push_back(layer->weight.detach());
    if (layer->adapter.defined()) {
      if (adapters == to.adapters.size()) to.adapters.emplace_back();
      pack_adapter(layer->adapter, first, to.adapters[adapters++]);
    }
    first += layer->weight.size(0);
  }
  to.matrix = PackedMatrix(precision, std::move(rows));
}

void pack_merged(Linears layers, PackedMatrix& to) {
  int64_t first = 0;
  for (const LinearWeights* layer : layers) {
    if (!layer->weight.defined()) continue;
    for_each_merged_rows(layer->weight, layer->adapter, [&](int64_t row, const at::Tensor& rows) { to.put(first + row, rows); });
    first += layer->weight.size(0);
  }
}

void pack_biases(Linears layers, const at::Tensor& to) {
  int64_t first = 0;
  for (const LinearWeights* layer : layers) {
    if (!layer->weight.defined()) continue;
    to.narrow(0, first, layer->bias.size(0)).copy_(layer->bias);
    first += layer->bias.size(0);
  }
}

// As add_adapter_output() computes it, a block of rows at a time.
void add_adapter(const PackedAdapter& adapter, Precision precision, const void* x, int64_t rows, float* out, int64_t stride) {
  constexpr int64_t kRows = 64;
  thread_local GrownBuffer<float> wide_memory, inner_memory;
  const int64_t inputs = adapter.a.inputs(), rank = adapter.a.outputs();
  float* const inner = inner_memory.at_least(kRows * rank);
  for (int64_t first = 0; first < rows; first += kRows) {
    const int64_t count = std::min(kRows, rows - first);
    const float* wide = nullptr;
    if (precision == Precision::kFloat32) {
      wide = static_cast<const float*>(x) + first * inputs;
    } else {
      float* const widened = wide_memory.at_least(kRows * inputs);
      const Bfloat16* const narrow = static_cast<const Bfloat16*>(x) + first * inputs;
      for (int64_t i = 0; i < count * inputs; ++i) widened[i] = to_float(narrow[i]);
      wide = widened;
    }
    multiply(adapter.a, {.x = wide, .x_stride = inputs, .rows = count, .out = inner, .out_stride = rank});
    for (int64_t i = 0; i < count * rank; ++i) inner[i] *= adapter.scale;
    multiply(adapter.b, {.x = inner,
                         .x_stride = rank,
                         .rows = count,
                         .out = out + first * stride + adapter.first,
                         .out_stride = stride,
                         .accumulate = true});
  }
}

}  // namespace

int64_t PackedAdapter::bytes_for(int64_t rank, int64_t outputs, int64_t inputs) {
  return PackedMatrix::bytes_for(Precision::kFloat32, rank, inputs) + PackedMatrix::bytes_for(Precision::kFloat32, outputs, rank);
}

int64_t PackedLinear::bytes() const {
  int64_t bytes = matrix.bytes() + (bias.defined() ? static_cast<int64_t>(bias.nbytes()) : 0);
  for (const PackedAdapter& adapter : adapters) bytes += adapter.bytes();
  return bytes;
}

void pack(std::span<const LinearWeights* const> layers, Precision precision, PackedLinear& to) {
  const StackShape shape(layers);
  if (shape.outputs == 0) return;
  if (shape.biased && !to.bias.defined()) to.bias = at::empty({shape.outputs}, at::kFloat);
  if (to.matrix.empty() && !shape.stays_quantised) to.matrix = PackedMatrix(precision, shape.outputs, shape.inputs);
  if (shape.stays_quantised) {
    pack_quantised(layers, precision, to);
  } else {
    SLUICE_CHECK(to.matrix.outputs() == shape.outputs && to.matrix.inputs() == shape.inputs, kOtherLinear);
    pack_merged(layers, to.matrix);
  }
  SLUICE_CHECK(to.bias.defined() == shape.biased, kOtherLinear);
  if (shape.biased) pack_biases(layers, to.bias);
}

void project(const PackedLinear& layer, const void* x, int64_t rows, float* out, bool accumulate) {
  project(layer, x, rows, out, layer.matrix.outputs(), accumulate);
}

void project(const PackedLinear& layer, const void* x, int64_t rows, float* out, int64_t stride, bool accumulate) {
  multiply(layer.matrix, {.x = x,
                          .x_stride = layer.matrix.inputs(),
                          .rows = rows,
                          .bias = layer.bias.defined() ? layer.bias.const_data_ptr<float>() : nullptr,
                          .out = out,
                          .out_stride = stride,
                          .accumulate = accumulate});
  for (const PackedAdapter& adapter : layer.adapters) add_adapter(adapter, layer.matrix.precision(), x, rows, out, stride);
}

}  // namespace sluice::models
