#include "nodes/token_values.h"

#include <ATen/ops/index_select.h>
#include <ATen/ops/matmul.h>

#include <vector>

#include "base/error.h"

namespace sluice::nodes {

at::Tensor token_values(const models::Transformer& model, const RaggedSamples& samples, const at::Tensor& places) {
  const at::Tensor states = model.hidden_states(samples.tokens, samples.sample_offsets).index_select(0, places);  // [N,H]
  return at::matmul(states, model.weights().value_head.squeeze(0).to(at::kFloat));
}

at::Tensor last_tokens(std::span<const int64_t> sample_offsets) {
  std::vector<int64_t> places;
  for (size_t s = 0; s + 1 < sample_offsets.size(); ++s) {
    SLUICE_CHECK(sample_offsets[s + 1] > sample_offsets[s], "a sample without tokens has no value");
    places.push_back(sample_offsets[s + 1] - 1);
  }
  return places_tensor(places);
}

}  // namespace sluice::nodes
