#include "nodes/train/on_policy.h"

#include <bit>
#include <cstdint>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {

using engine::Range;

namespace {

std::string name_of(const engine::MicroBatch& batch, size_t sample) {
  const std::vector<Range> groups = batch.layout().samples_by_group();
  size_t group = 0;
  while (groups[group].end <= sample) ++group;
  return "sample " + std::to_string(sample - groups[group].begin) + " of group " + std::to_string(batch.group_index(group));
}

[[noreturn]] void refuse(const std::string& sample, size_t action, float sampled, float computed) {
  throw UserError("on_policy = \"exact\": action " + std::to_string(action) + " of " + sample +
                      " was sampled with log-probability " + fixed(sampled, 9) + ", training computes " + fixed(computed, 9),
                  "samples of other weights, or another temperature or dtype than in the node that samples, do that; "
                  "on_policy = \"measured\" trains on them");
}

}  // namespace

void require_same_bits(const at::Tensor& logprobs, const at::Tensor& rollout_logprobs, const at::Tensor& mask,
                       const engine::MicroBatch& batch, std::span<const size_t> chosen) {
  const at::Tensor dense = logprobs.contiguous(), dense_rollout = rollout_logprobs.contiguous();
  const at::Tensor dense_mask = mask.defined() ? mask.contiguous() : mask;
  const auto* computed = dense.const_data_ptr<float>();
  const auto* sampled = dense_rollout.const_data_ptr<float>();
  const auto* counts = dense_mask.defined() ? dense_mask.const_data_ptr<float>() : nullptr;
  const std::vector<Range> actions = batch.actions_by_sample();
  size_t entry = 0;
  for (const size_t sample : chosen) {
    for (size_t action = 0; action < actions[sample].size(); ++action, ++entry) {
      if (counts != nullptr && counts[entry] == 0) continue;
      if (std::bit_cast<uint32_t>(sampled[entry]) == std::bit_cast<uint32_t>(computed[entry])) continue;
      refuse(name_of(batch, sample), action, sampled[entry], computed[entry]);
    }
  }
}

}  // namespace sluice::nodes
