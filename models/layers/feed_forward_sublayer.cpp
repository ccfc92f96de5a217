#include "models/layers/feed_forward_sublayer.h"

#include <ATen/ops/empty_like.h>

#include <algorithm>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "base/error.h"
#include "models/layers/feed_forward/feed_forward.h"
#include "models/layers/packed_matrices.h"
#include "models/layers/step_scratch.h"

namespace sluice::models {
namespace {

constexpr int64_t kPackedRows = 256;  // whose inner activations exist at a time

// Of a packed layer: as generation computes it, which has the bits of the forward.
void forward_packed(const LayerPass& pass, const PackedMatrices& layer, const FeedForward& network, const LayerRoutes& routes,
                    const at::Tensor& in, const at::Tensor& out, bool add) {
  StepScratch scratch;
  const int64_t rows = in.size(0), size = in.size(1);
  SLUICE_CHECK(in.is_contiguous() && out.is_contiguous(), "a step goes over rows side by side");
  for (int64_t first = 0; first < rows; first += kPackedRows) {
    network.step(pass.config, layer.feed_forward,
                 {.x = static_cast<const char*>(in.const_data_ptr()) + first * size * bytes_of(pass.precision),
                  .tokens = std::min(kPackedRows, rows - first),
                  .out = out.mutable_data_ptr<float>() + first * size,
                  .accumulate = add,
                  .routes = routes.from(first)},
                 scratch);
  }
}

void forward(const LayerPass& pass, const LayerWeights& layer, int64_t index, const at::Tensor& in,
             std::span<const at::Tensor> inner, const at::Tensor& out, bool add) {
  const LayerRoutes routes = pass.routes_of(index);
  const FeedForward& network = feed_forward_of(pass.config, index);
  if (layer.packed) return forward_packed(pass, *layer.packed, network, routes, in, out, add);
  network.forward(pass, layer.feed_forward, in, inner, routes, out, add);
}

}  // namespace

at::Tensor feed_forward(const LayerPass& pass, const LayerWeights& layer, int64_t index, at::Tensor x, KeptFeedForward* kept) {
  const FeedForward& network = feed_forward_of(pass.config, index);
  KeptRead read = read_residual(pass, x, pass.norm(layer.feed_forward_norm, layer.feed_forward_norm_bias));
  std::vector<at::Tensor> inner;
  if (kept) inner = allocated(network.kept(pass.shape().of_layer(index)));
  KeptNorm added_norm;
  at::Tensor result;
  if (pass.shape().adds_normed()) {
    const at::Tensor added = at::empty_like(x);
    forward(pass, layer, index, read.in, inner, added, false);
    result = add_normed(x, added, pass.norm(layer.feed_forward_output_norm), added_norm);
  } else {
    result = kept ? x.clone(at::MemoryFormat::Contiguous) : std::move(x);
    forward(pass, layer, index, read.in, inner, result, true);
  }
  if (kept) *kept = {std::move(read), std::move(inner), std::move(added_norm)};
  return result;
}

void feed_forward_backward(const LayerPass& pass, const LayerWeights& layer, int64_t index, const KeptFeedForward& kept,
                           const at::Tensor& grad) {
  const at::Tensor added = added_gradient(pass, pass.norm(layer.feed_forward_output_norm), kept.added_norm, grad);
  const ReadGradient read = read_gradient(pass, grad);
  const std::optional<RouterOfLayer> router = pass.router_of(index);
  feed_forward_of(pass.config, index)
      .backward(pass, layer.feed_forward, kept.read.in, kept.inner, added, read, router ? &*router : nullptr);
  finish_read_gradient(pass, pass.norm(layer.feed_forward_norm, layer.feed_forward_norm_bias), kept.read, read, grad);
}

SublayerBytes feed_forward_bytes(const PassShape& shape) {
  const PartBytes network = feed_forward_of(shape.config, shape.layer).bytes(shape);
  const int64_t read = read_bytes(shape), added = added_bytes(shape), stream = shape.stream_bytes();
  // x is kept by who reads it, or at hand until the result is made; without a gradient x becomes the result where it can.
  const int64_t kept = read + if_there(keeps_stream(shape), stream) + network.kept + added;
  const int64_t at_hand = if_there(!keeps_stream(shape), stream);
  const int64_t norm = norm_backward_bytes(shape.config.norm, shape.tokens, shape.config.hidden_size);
  return {.kept = kept,
          .keeping = kept + at_hand + stream + network.forward,
          .forward = read + added + if_there(shape.adds_normed(), stream) + network.forward,
          .backward = added_gradient_bytes(shape) + read_gradient_bytes(shape) + std::max(network.backward, norm)};
}

}  // namespace sluice::models
