#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "engine/contract/columns/layout.h"

namespace sluice::nodes {

/// Samples as a model takes them: tokens back to back, and which of them are actions. S samples of T tokens, A of which are
/// actions.
struct RaggedSamples {
  at::Tensor tokens;                       // [T] int64
  std::vector<int64_t> sample_offsets{0};  // [S+1] into tokens
  at::Tensor predicting;                   // [A] int64, the token whose hidden state predicts the action: the one before it
  at::Tensor targets;                      // [A] int64, the action's own token
  int64_t actions = 0;                     // A
  at::Tensor routes;  // [T,bytes] uint8, where the routers of a mixture send the tokens; undefined: they choose
};

/// What a micro-batch has of its samples for a model to compute with: views of its columns.
struct SampleColumns {
  std::span<const int64_t> tokens;           // [T]
  std::span<const std::string> routes = {};  // [S] of columns::kRoutes; empty: the routers choose
};

/// All samples of `layout`; shares the memory of the tokens, which must outlive the result. Throws UserError for routes that are
/// not of these samples.
RaggedSamples all_samples(const SampleColumns& columns, const engine::Layout& layout);

/// The samples `chosen` (ascending indices into those of `layout`), copied together without padding; if they are all of them, as
/// all_samples().
RaggedSamples some_samples(const SampleColumns& columns, const engine::Layout& layout, std::span<const size_t> chosen);

/// The samples of the groups `chosen` (ascending indices into those of `layout`), ascending.
std::vector<size_t> samples_of_groups(const engine::Layout& layout, std::span<const size_t> chosen);

/// Where the actions of each of the samples `chosen` begin when they are copied together: [S'+1].
std::vector<int64_t> action_offsets(const engine::Layout& layout, std::span<const size_t> chosen);

/// Those of `chosen` that have an action with a mask[A] other than 0; without a mask (empty) those that have actions.
std::vector<size_t> samples_that_count(const engine::Layout& layout, std::span<const float> mask, std::span<const size_t> chosen);

/// Action entries as a tensor [A] float32 that shares the memory of `entries`, which must outlive it.
at::Tensor action_tensor(std::span<const float> entries);

/// The entries that the actions of the samples `chosen` have, copied: [A'].
std::vector<float> gathered_actions(std::span<const float> entries, const engine::Layout& layout, std::span<const size_t> chosen);

/// The same as a tensor: [A'] float32.
at::Tensor action_tensor(std::span<const float> entries, const engine::Layout& layout, std::span<const size_t> chosen);

/// `places` as an index tensor [N] int64, copied.
at::Tensor places_tensor(std::span<const int64_t> places);

/// Places of the last token of each sample, none of which is empty: [S] int64.
at::Tensor last_tokens(std::span<const int64_t> sample_offsets);

/// Copies `tensor` [N] into `entries` [N].
void copy_entries(const at::Tensor& tensor, std::span<float> entries);

/// Copies `tensor` [A'], entries of the actions of the samples `chosen`, to where these are in `entries` [A].
void copy_entries(const at::Tensor& tensor, const engine::Layout& layout, std::span<const size_t> chosen,
                  std::span<float> entries);

}  // namespace sluice::nodes
