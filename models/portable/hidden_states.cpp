#include "models/portable/hidden_states.h"

#include <ATen/core/grad_mode.h>

#include <algorithm>
#include <optional>
#include <vector>

#include "base/error.h"
#include "models/layers/ragged_attention.h"
#include "models/portable/abilities.h"
#include "models/portable/attention.h"
#include "models/portable/checkpoint.h"
#include "models/portable/layer_maths.h"
#include "models/portable/shared_heads.h"

namespace sluice::models::portable {
namespace {

// Of each token that is here its place in its sample [n], and the cosines and sines of that; on the device.
struct Places {
  at::Tensor positions;
  std::vector<at::Tensor> angles;  // [n,R] for each rope_at() of the config; none with learned positions
};

at::Tensor angles_of(const ModelConfig& config, const RaggedLayout& layout, int64_t rope, at::Device device) {
  const int64_t dims = config.rotary_dims(rope);
  const at::Tensor angles = empty_for(device, {layout.rows(), dims}, at::kFloat);
  float* to = angles.mutable_data_ptr<float>();
  for (size_t s = 0; s + 1 < layout.row_offsets.size(); ++s) {
    const RotaryTable& table = layout.rotary(static_cast<int64_t>(s), rope);
    for (int64_t row = layout.row_offsets[s]; row < layout.row_offsets[s + 1]; ++row)
      to = std::copy_n(table.row(layout.positions[static_cast<size_t>(row)]), dims, to);
  }
  return copied_to(device, angles);
}

Places places_of(const ModelConfig& config, const RaggedLayout& layout, at::Device device) {
  Places places{empty_for(device, {layout.rows()}, at::kLong), {}};
  std::copy(layout.positions.begin(), layout.positions.end(), places.positions.mutable_data_ptr<int64_t>());
  places.positions = copied_to(device, places.positions);
  if (config.learned_positions) return places;
  for (int64_t rope = 0; rope < config.ropes(); ++rope) places.angles.push_back(angles_of(config, layout, rope, device));
  return places;
}

// [n] int64, on the device.
at::Tensor samples_of_tokens(std::span<const int64_t> offsets, at::Device device) {
  const at::Tensor samples = empty_for(device, {offsets.back()}, at::kLong);
  int64_t* next = samples.mutable_data_ptr<int64_t>();
  for (size_t s = 0; s + 1 < offsets.size(); ++s) next = std::fill_n(next, offsets[s + 1] - offsets[s], static_cast<int64_t>(s));
  return copied_to(device, samples);
}

}  // namespace

at::Tensor hidden_states(const ModelConfig& config, const Weights& weights, const at::Tensor& tokens,
                         std::span<const int64_t> sample_offsets, const Pass& pass) {
  const Segment segment =
      pass.segment.is_whole() ? Segment{.tokens = sample_offsets.empty() ? 0 : sample_offsets.back()} : pass.segment;
  const RaggedLayout layout(config, sample_offsets, segment);
  SLUICE_CHECK(layout.rows() == tokens.numel(), "the last sample must end at the last token");
  SLUICE_CHECK(tokens.device() == weights.embedding.device(), "tokens must be where the weights are");
  SLUICE_CHECK(!config.learned_positions || layout.longest <= weights.positions.size(0),
               "a sample is longer than the table of positions");
  const Places places = places_of(config, layout, tokens.device());
  const SampleOffsets samples = portable::sample_offsets(layout.offsets, tokens.device());
  const at::Tensor sample_of = pass.routers ? samples_of_tokens(layout.row_offsets, tokens.device()) : at::Tensor();
  const LayerMaths maths(config, pass.precision);
  at::Tensor x = maths.embed(weights, tokens, places.positions);  // [n,H]
  for (size_t i = 0; i < weights.layers.size(); ++i) {
    // By value: a checkpoint runs it again when this pass is over.
    const auto run = [config, pass, segment, angles = angles_of_layer(config, places.angles, static_cast<int64_t>(i)),
                      layer = weights.layers[i], index = static_cast<int64_t>(i),
                      scores = scores_of(config, static_cast<int64_t>(i)), samples, rows = layout.row_offsets,
                      sample_of](const at::Tensor& in) {
      const LayerMaths of_layer(config, pass.precision);
      const LayerMaths::Heads heads = shared_heads(segment, of_layer.heads(in, layer, angles));
      const at::Tensor attended = own_rows(segment, ragged_attention(heads.query, heads.key, heads.value, samples, scores));
      std::optional<RouterOfLayer> router;
      if (pass.routers) router.emplace(RouterOfLayer{*pass.routers, index, rows, segment, sample_of});
      return of_layer.add_feed_forward(of_layer.add_attended(in, attended.flatten(1), layer), layer, index,
                                       router ? &*router : nullptr,
                                       {.given = layer_routes_in_operators(config, pass.routes, index)});
    };
    x = pass.checkpointing && at::GradMode::is_enabled() ? checkpointed(run, x) : run(x);
  }
  return maths.normalised(x, weights.final_norm, weights.final_norm_bias);
}

}  // namespace sluice::models::portable
