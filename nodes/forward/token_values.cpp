#include "nodes/forward/token_values.h"

#include <vector>

#include "base/error.h"
#include "models/forward/value_head.h"
#include "nodes/forward/forward.h"

namespace sluice::nodes {

at::Tensor token_values(const models::Transformer& model, const RaggedSamples& samples, const at::Tensor& places) {
  const at::Tensor states = states_at(model, samples, places);  // [N,H]
  return models::head_values(states, model.weights().value_head).to(at::kCPU);
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
