#include "models/layers/feed_forward/joined_routings.h"

#include <ATen/ops/empty.h>

#include <algorithm>

namespace sluice::models {
namespace {

// A sample's numbers side by side: tokens, those that are rerouted, entropy, and of each expert tokens and shares.
at::Tensor numbers_of(const std::vector<SampleRouting>& samples, size_t experts) {
  const at::Tensor all = at::empty({static_cast<int64_t>(samples.size()), static_cast<int64_t>(3 + 2 * experts)}, at::kDouble);
  auto* to = all.mutable_data_ptr<double>();
  for (const SampleRouting& sample : samples) {
    *to++ = static_cast<double>(sample.tokens);
    *to++ = static_cast<double>(sample.rerouted);
    *to++ = sample.entropy;
    to = std::ranges::transform(sample.through, to, [](int64_t tokens) { return static_cast<double>(tokens); }).out;
    to = std::ranges::copy(sample.shares, to).out;
  }
  return all;
}

void add_numbers(const at::Tensor& numbers, std::vector<SampleRouting>& samples) {
  const auto* from = numbers.const_data_ptr<double>();
  for (SampleRouting& sample : samples) {
    sample.tokens += static_cast<int64_t>(*from++);
    sample.rerouted += static_cast<int64_t>(*from++);
    sample.entropy += *from++;
    for (int64_t& tokens : sample.through) tokens += static_cast<int64_t>(*from++);
    for (double& share : sample.shares) share += *from++;
  }
}

}  // namespace

std::vector<SampleRouting> of_all_segments(const Segment& segment, std::vector<SampleRouting> samples) {
  if (segment.is_whole() || samples.empty()) return samples;
  const size_t experts = samples.front().through.size();
  const at::Tensor own = numbers_of(samples, experts);
  std::vector<SegmentExchange::Tensors> to, from;
  for (int place = 0; place < segment.ranks; ++place) {
    to.push_back({own});
    from.push_back({place == segment.place ? own : at::empty(own.sizes(), own.options())});
  }
  segment.exchange->exchange(to, from);
  for (SampleRouting& sample : samples)
    sample = {.through = std::vector<int64_t>(experts), .shares = std::vector<double>(experts)};
  for (const SegmentExchange::Tensors& of_place : from) add_numbers(of_place.front(), samples);
  return samples;
}

}  // namespace sluice::models
