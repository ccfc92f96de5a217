#include "models/layers/column_share.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>
#include <ATen/ops/tensor.h>

#include <vector>

#include "base/error.h"
#include "models/layers/feed_forward/feed_forward.h"

namespace sluice::models {
namespace {

using Tensors = SegmentExchange::Tensors;

at::Tensor columns_of(const at::Tensor& rows, const TokenRange& columns) { return rows.narrow(1, columns.begin, columns.size()); }

at::Tensor tensor_over(const void* x, int64_t rows, int64_t size, at::ScalarType type) {
  return at::from_blob(const_cast<void*>(x), {rows, size}, type);
}

// `all` has the columns of this place already, or gets none.
void exchange_columns(const ColumnShare& share, const at::Tensor& own, const at::Tensor& all, int64_t size, bool at_first) {
  const auto places = static_cast<size_t>(share.places());
  std::vector<Tensors> to(places), from(places);
  for (int other = 0; other < share.ranks; ++other) {
    if (other == share.place) continue;
    const auto at = static_cast<size_t>(other);
    if (!at_first || other == 0) to[at].push_back(own);
    if (!at_first || share.place == 0) from[at].push_back(columns_of(all, share.of(size, other)));
  }
  share.exchange->exchange(to, from);
}

at::Tensor rows_of(const at::Tensor& weight, const TokenRange& rows) {
  return weight.defined() ? weight.detach().narrow(0, rows.begin, rows.size()) : at::Tensor();
}

// Outputs `rows` of it; none: it is not there.
LinearWeights part_of(const LinearWeights& linear, const TokenRange& rows) {
  if (!linear.weight.defined() || rows.size() == 0) return {};
  LinearWeights part = linear;
  part.weight = rows_of(linear.weight, rows), part.bias = rows_of(linear.bias, rows);
  if (linear.adapter.defined()) part.adapter.b = rows_of(linear.adapter.b, rows);
  return part;
}

}  // namespace

int ColumnShare::place_of(int64_t size, int64_t column) const {
  SLUICE_CHECK(column >= 0 && column < size, "a column that a matrix does not have");
  int at = static_cast<int>(column * ranks / size);  // at most one too small
  if (of(size, at).end <= column) ++at;
  return at;
}

void ColumnShare::gather(const OperandRows& own, int64_t rows, int64_t size, const OperandRows& all) const {
  const at::ScalarType type = own.wide ? at::kFloat : at::kBFloat16;
  const at::Tensor of_all = tensor_over(all.data(), rows, size, type),
                   here = tensor_over(own.data(), rows, of(size).size(), type);
  columns_of(of_all, of(size)).copy_(here);
  exchange_columns(*this, here, of_all, size, /*at_first=*/false);
}

void ColumnShare::gather(float* x, int64_t rows, int64_t size) const {
  if (has_all_columns()) return;
  const at::Tensor of_all = tensor_over(x, rows, size, at::kFloat);
  exchange_columns(*this, columns_of(of_all, of(size)), of_all, size, /*at_first=*/false);
}

void ColumnShare::gather_at_first(const float* own, int64_t rows, int64_t size, float* all) const {
  const at::Tensor here = tensor_over(own, rows, of(size).size(), at::kFloat);
  const at::Tensor of_all = place == 0 ? tensor_over(all, rows, size, at::kFloat) : at::Tensor();
  if (place == 0) columns_of(of_all, of(size)).copy_(here);
  exchange_columns(*this, here, of_all, size, /*at_first=*/true);
}

void ColumnShare::gather_rows(float* x, int64_t size, std::span<const int> places) const {
  if (has_all_columns()) return;
  std::vector<std::vector<int64_t>> rows_of_place(static_cast<size_t>(ranks));
  for (size_t row = 0; row < places.size(); ++row)
    rows_of_place[static_cast<size_t>(places[row])].push_back(static_cast<int64_t>(row));
  const at::Tensor all = tensor_over(x, static_cast<int64_t>(places.size()), size, at::kFloat);
  std::vector<Tensors> to(static_cast<size_t>(this->places())), from(to.size());
  const at::Tensor own = all.index_select(0, at::tensor(rows_of_place[static_cast<size_t>(place)], at::kLong));
  for (size_t other = 0; other < rows_of_place.size(); ++other) {
    if (static_cast<int>(other) == place) continue;
    to[other].push_back(own);
    from[other].push_back(at::empty({static_cast<int64_t>(rows_of_place[other].size()), size}));
  }
  exchange->exchange(to, from);
  for (size_t other = 0; other < rows_of_place.size(); ++other) {
    if (static_cast<int>(other) == place) continue;
    at::Tensor(all).index_copy_(0, at::tensor(rows_of_place[other], at::kLong), from[other].front());
  }
}

ModelConfig heads_of(const ModelConfig& config, int ranks) {
  SLUICE_CHECK(config.kv_heads % ranks == 0, "heads of keys that cannot be divided among those who sample");
  ModelConfig part = config;
  part.heads /= ranks, part.kv_heads /= ranks;
  return part;
}

Weights part_of(const Weights& weights, const ColumnShare& share) {
  if (share.is_whole()) return weights;
  Weights part = weights;
  if (!share.has_columns()) part = {.names_of = weights.names_of, .layers = weights.layers};
  if (share.has_columns()) {
    const bool tied = weights.head.is_same(weights.embedding);
    part.embedding = rows_of(weights.embedding, share.of(weights.embedding.size(0)));
    part.head = tied ? part.embedding : rows_of(weights.head, share.of(weights.head.size(0)));
  }
  for (LayerWeights& layer : part.layers) {
    const FeedForward& network = feed_forward_of(layer);
    std::vector<LinearWeights> of_network = std::move(layer.feed_forward);
    if (!share.has_columns()) layer = {.network = layer.network};
    for (LinearWeights* const linear : {&layer.query, &layer.key, &layer.value, &layer.attention_output})
      if (linear->weight.defined()) *linear = part_of(*linear, share.of(linear->weight.size(0)));
    for (size_t i = 0; i < of_network.size(); ++i) {
      const int64_t outputs = of_network[i].weight.defined() ? of_network[i].weight.size(0) : 0;
      of_network[i] = part_of(of_network[i], network.outputs_of(i, of_network.size(), outputs, share));
    }
    layer.feed_forward = std::move(of_network);
  }
  return part;
}

}  // namespace sluice::models
