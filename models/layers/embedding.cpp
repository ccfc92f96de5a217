#include "models/layers/embedding.h"

#include <ATen/ops/embedding.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/tensor.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "models/kernels/packed_matrix.h"
#include "models/kernels/parallel.h"
#include "models/layers/gradient.h"
#include "models/layers/operand.h"

namespace sluice::models {
namespace {

at::Tensor rows_of(const at::Tensor& table, const at::Tensor& ids, Precision precision) {
  return to_operand(at::embedding(table.detach(), ids), precision).to(at::kFloat);
}

// Of a table that is the packed head.
at::Tensor rows_of(const PackedMatrix& table, const at::Tensor& ids) {
  const at::Tensor rows = at::empty({ids.numel(), table.inputs()});
  const auto* id = ids.const_data_ptr<int64_t>();
  auto* const to = rows.mutable_data_ptr<float>();
  for (int64_t t = 0; t < ids.numel(); ++t) table.row(id[t], to + t * table.inputs());
  return rows;
}

// table[ids[t]] += scale grad[t], in the order of t: each thread adds columns of its own.
void add_to_rows(const at::Tensor& table, const at::Tensor& ids, const at::Tensor& grad, float scale) {
  if (!table.defined()) return;
  constexpr int64_t kColumns = 64;
  const int64_t size = table.size(1), count = ids.numel();
  const auto* id = ids.const_data_ptr<int64_t>();
  const float* from = grad.const_data_ptr<float>();
  float* to = table.mutable_data_ptr<float>();
  parallel_ranges((size + kColumns - 1) / kColumns, 1, [&](int64_t begin, int64_t end) {
    const int64_t first = begin * kColumns, last = std::min(end * kColumns, size);
    for (int64_t t = 0; t < count; ++t) {
      for (int64_t i = first; i < last; ++i) to[id[t] * size + i] += scale * from[t * size + i];
    }
  });
}

}  // namespace

at::Tensor embed(const ModelConfig& config, const Weights& weights, const at::Tensor& token_view, const RaggedLayout& layout,
                 Precision precision) {
  const at::Tensor tokens = token_view.contiguous();
  const auto scale = static_cast<float>(config.embedding_scale);
  const bool is_head = weights.is_packed() && !weights.embedding.defined();
  const at::Tensor x = is_head ? rows_of(*weights.packed_head, tokens) : rows_of(weights.embedding, tokens, precision);
  if (config.embedding_scale != 1.0) x.mul_(scale);
  at::Tensor positions;
  if (config.learned_positions) {
    SLUICE_CHECK(layout.longest <= weights.positions.size(0), "a sample is longer than the table of positions");
    positions = at::tensor(layout.positions, at::kLong);
    x.add_(rows_of(weights.positions, positions, Precision::kFloat32));
  }
  const at::Tensor table = weights.embedding, place_table = weights.positions;
  if (is_head || !records_gradient({table, place_table})) return x;
  attach_backward({x}, {}, {table, place_table}, [=](std::vector<at::Tensor>&& gradients) {
    const at::Tensor grad = owned(std::move(gradients[0]));
    add_to_rows(gradient_of(table), tokens, grad, scale);
    if (positions.defined()) add_to_rows(gradient_of(place_table), positions, grad, 1.0f);
    return at::Tensor();
  });
  return x;
}

}  // namespace sluice::models
