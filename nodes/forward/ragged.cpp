#include "nodes/forward/ragged.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/from_blob.h>

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "models/layers/feed_forward/routes.h"

namespace sluice::nodes {

namespace {

// Tensors never write through it: what they are made of is sealed.
template <class T>
at::Tensor shared_tensor(std::span<const T> entries, at::ScalarType type) {
  return at::from_blob(const_cast<T*>(entries.data()), {static_cast<int64_t>(entries.size())}, at::TensorOptions(type));
}

template <class T>
at::Tensor copied_tensor(const std::vector<T>& entries, at::ScalarType type) {
  at::Tensor tensor = at::empty({static_cast<int64_t>(entries.size())}, at::TensorOptions(type));
  std::ranges::copy(entries, tensor.data_ptr<T>());
  return tensor;
}

// Of the samples' tokens one after the other; that of the last token of each is open.
at::Tensor gathered_routes(std::span<const std::string> routes, const engine::Layout& layout, std::span<const size_t> chosen) {
  if (routes.empty()) return {};
  int64_t tokens = 0, bytes = 0;  // of a token
  const auto tokens_of = [&](size_t sample) { return layout.token_offsets[sample + 1] - layout.token_offsets[sample]; };
  for (const size_t sample : chosen) {
    const int64_t routed = tokens_of(sample) - 1, size = static_cast<int64_t>(routes[sample].size());
    if (routed > 0 && bytes == 0) bytes = size / routed;
    if (size != routed * bytes || (routed > 0 && bytes == 0))
      throw UserError(
          "the routes of a sample of " + std::to_string(routed + 1) + " tokens have " + std::to_string(size) + " bytes",
          "routes as `generate` writes them, of the tokens that it sampled");
    tokens += routed + 1;
  }
  const at::Tensor gathered = at::empty({tokens, bytes}, at::kByte);
  auto* to = gathered.mutable_data_ptr<uint8_t>();
  for (const size_t sample : chosen) {
    to = std::ranges::copy(routes[sample], to).out;
    models::open_tokens({to, static_cast<size_t>(bytes)});
    to += bytes;
  }
  return gathered;
}

}  // namespace

RaggedSamples all_samples(const SampleColumns& columns, const engine::Layout& layout) {
  const std::span<const int64_t> tokens = columns.tokens;
  SLUICE_CHECK(tokens.size() == layout.tokens(), "the token column does not fit the layout");
  std::vector<size_t> all(layout.samples());
  std::iota(all.begin(), all.end(), size_t{0});
  std::vector<int64_t> predicting, targets;
  for (const int64_t token : layout.action_tokens) {
    predicting.push_back(token - 1);
    targets.push_back(tokens[token]);
  }
  return {.tokens = shared_tensor(tokens, at::kLong),
          .sample_offsets = layout.token_offsets,
          .predicting = copied_tensor(predicting, at::kLong),
          .targets = copied_tensor(targets, at::kLong),
          .actions = static_cast<int64_t>(layout.actions()),
          .routes = gathered_routes(columns.routes, layout, all)};
}

RaggedSamples some_samples(const SampleColumns& columns, const engine::Layout& layout, std::span<const size_t> chosen) {
  if (chosen.size() == layout.samples()) return all_samples(columns, layout);
  const std::span<const int64_t> tokens = columns.tokens;
  std::vector<int64_t> gathered, predicting, targets;
  RaggedSamples samples;
  for (const size_t sample : chosen) {
    const int64_t begin = layout.token_offsets[sample], end = layout.token_offsets[sample + 1];
    const int64_t shift = static_cast<int64_t>(gathered.size()) - begin;
    gathered.insert(gathered.end(), tokens.begin() + begin, tokens.begin() + end);
    samples.sample_offsets.push_back(static_cast<int64_t>(gathered.size()));
    for (int64_t a = layout.action_offsets[sample]; a < layout.action_offsets[sample + 1]; ++a) {
      const int64_t token = layout.action_tokens[a];
      predicting.push_back(token - 1 + shift);
      targets.push_back(tokens[token]);
    }
  }
  samples.tokens = copied_tensor(gathered, at::kLong);
  samples.predicting = copied_tensor(predicting, at::kLong);
  samples.targets = copied_tensor(targets, at::kLong);
  samples.actions = static_cast<int64_t>(targets.size());
  samples.routes = gathered_routes(columns.routes, layout, chosen);
  return samples;
}

std::vector<size_t> samples_of_groups(const engine::Layout& layout, std::span<const size_t> chosen) {
  std::vector<size_t> samples;
  for (const size_t group : chosen) {
    for (int64_t s = layout.group_offsets[group]; s < layout.group_offsets[group + 1]; ++s)
      samples.push_back(static_cast<size_t>(s));
  }
  return samples;
}

std::vector<int64_t> action_offsets(const engine::Layout& layout, std::span<const size_t> chosen) {
  std::vector<int64_t> offsets{0};
  for (const size_t sample : chosen)
    offsets.push_back(offsets.back() + layout.action_offsets[sample + 1] - layout.action_offsets[sample]);
  return offsets;
}

std::vector<size_t> samples_that_count(const engine::Layout& layout, std::span<const float> mask,
                                       std::span<const size_t> chosen) {
  std::vector<size_t> counting;
  for (const size_t sample : chosen) {
    const auto begin = layout.action_offsets[sample], end = layout.action_offsets[sample + 1];
    const auto counts = [&](int64_t action) { return mask.empty() || mask[static_cast<size_t>(action)] != 0; };
    for (int64_t action = begin; action < end; ++action) {
      if (!counts(action)) continue;
      counting.push_back(sample);
      break;
    }
  }
  return counting;
}

at::Tensor action_tensor(std::span<const float> entries) { return shared_tensor(entries, at::kFloat); }

std::vector<float> gathered_actions(std::span<const float> entries, const engine::Layout& layout,
                                    std::span<const size_t> chosen) {
  std::vector<float> gathered;
  for (const size_t sample : chosen) {
    gathered.insert(gathered.end(), entries.begin() + layout.action_offsets[sample],
                    entries.begin() + layout.action_offsets[sample + 1]);
  }
  return gathered;
}

at::Tensor action_tensor(std::span<const float> entries, const engine::Layout& layout, std::span<const size_t> chosen) {
  return copied_tensor(gathered_actions(entries, layout, chosen), at::kFloat);
}

at::Tensor places_tensor(std::span<const int64_t> places) {
  return copied_tensor(std::vector<int64_t>(places.begin(), places.end()), at::kLong);
}

at::Tensor last_tokens(std::span<const int64_t> sample_offsets) {
  std::vector<int64_t> places;
  for (size_t s = 0; s + 1 < sample_offsets.size(); ++s) {
    SLUICE_CHECK(sample_offsets[s + 1] > sample_offsets[s], "a sample without tokens has no value");
    places.push_back(sample_offsets[s + 1] - 1);
  }
  return places_tensor(places);
}

void copy_entries(const at::Tensor& tensor, std::span<float> entries) {
  SLUICE_CHECK(tensor.numel() == static_cast<int64_t>(entries.size()), "a tensor does not fit its column");
  const at::Tensor flat = tensor.detach().contiguous();
  std::copy_n(flat.const_data_ptr<float>(), entries.size(), entries.data());
}

void copy_entries(const at::Tensor& tensor, const engine::Layout& layout, std::span<const size_t> chosen,
                  std::span<float> entries) {
  const at::Tensor flat = tensor.detach().contiguous();
  SLUICE_CHECK(flat.numel() == action_offsets(layout, chosen).back(), "a tensor does not fit its samples");
  const float* from = flat.const_data_ptr<float>();
  for (const size_t sample : chosen) {
    const int64_t first = layout.action_offsets[sample], count = layout.action_offsets[sample + 1] - first;
    std::copy_n(from, count, entries.data() + first);
    from += count;
  }
}

}  // namespace sluice::nodes
