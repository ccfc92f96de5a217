#include "models/layers/packed_linear.h"

#include <ATen/ops/empty.h>

#include "base/error.h"
#include "models/layers/adapter_products.h"

namespace sluice::models {

void pack(std::span<const LinearWeights* const> layers, Precision precision, PackedLinear& to) {
  int64_t outputs = 0, inputs = 0;
  bool biased = false;
  for (const LinearWeights* layer : layers) {
    if (!layer->weight.defined()) continue;
    outputs += layer->weight.size(0);
    inputs = layer->weight.size(1);
    biased = layer->bias.defined();
  }
  if (to.matrix.empty()) to.matrix = PackedMatrix(precision, outputs, inputs);
  if (biased && !to.bias.defined()) to.bias = at::empty({outputs}, at::kFloat);
  SLUICE_CHECK(to.matrix.outputs() == outputs && to.matrix.inputs() == inputs && to.bias.defined() == biased,
               "weights of another shape are packed into the memory of these");
  int64_t next = 0;
  for (const LinearWeights* layer : layers) {
    if (!layer->weight.defined()) continue;
    const int64_t count = layer->weight.size(0);
    for_each_merged_rows(layer->weight, layer->adapter,
                         [&](int64_t first, const at::Tensor& rows) { to.matrix.put(next + first, rows); });
    if (biased) to.bias.narrow(0, next, count).copy_(layer->bias);
    next += count;
  }
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
}

}  // namespace sluice::models
