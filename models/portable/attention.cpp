#include "models/portable/attention.h"

#include <ATen/ops/_flash_attention_forward.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/scaled_dot_product_attention.h>
#include <ATen/ops/softmax.h>
#include <ATen/ops/tanh.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <vector>

#include "models/portable/abilities.h"

namespace sluice::models::portable {
namespace {

// Keys or values [B,Nk,L,D], each as often as queries share it.
at::Tensor repeated(const at::Tensor& x, int64_t heads) {
  const int64_t group = heads / x.size(1);
  return group == 1 ? x : x.repeat_interleave(group, 1);
}

// [1,1,L,L]: which keys (columns) a query sees
at::Tensor causal_mask(int64_t length, int64_t window, at::Device device) {
  const at::Tensor place = at::arange(length, at::TensorOptions(at::kLong).device(device));
  const at::Tensor back = place.unsqueeze(1).sub(place.unsqueeze(0));
  const at::Tensor seen = window > 0 ? back.ge(0).logical_and(back.lt(window)) : back.ge(0);
  return seen.unsqueeze(0).unsqueeze(0);
}

// [1,N,L,D] each
at::Tensor causal_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value,
                            const AttentionScores& scores) {
  const int64_t length = query.size(2);
  const bool whole = scores.window == 0 || scores.window >= length;
  if (!whole || scores.softcap != 0)
    return masked_attention(query, key, value, causal_mask(length, whole ? 0 : scores.window, query.device()), scores);
  return at::scaled_dot_product_attention(query, repeated(key, query.size(1)), repeated(value, query.size(1)), {}, 0.0,
                                          /*is_causal=*/length > 1, scores.scale);
}

}  // namespace

// As it is built for head sizes up to 256.
bool takes_flash(const at::Tensor& query, const AttentionScores& scores) {
  const int64_t head_dim = query.size(2);
  return has_flash_attention(query.device()) && at::isReducedFloatingType(query.scalar_type()) && scores.softcap == 0 &&
         head_dim % 8 == 0 && head_dim <= 256;
}

at::Tensor flash_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const Begins& new_tokens,
                           const Begins& tokens, const AttentionScores& scores) {
  const std::optional<int64_t> before = scores.window > 0 ? std::optional<int64_t>(scores.window - 1) : std::nullopt;
  return std::get<0>(at::_flash_attention_forward(query, key, value, new_tokens.there, tokens.there, new_tokens.longest,
                                                  tokens.longest, /*dropout_p=*/0.0, /*is_causal=*/true,
                                                  /*return_debug_mask=*/false, std::optional<double>(scores.scale), before));
}

// The queries that share a key head stand below each other, so that nobody copies keys and values.
at::Tensor masked_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const at::Tensor& seen,
                            const AttentionScores& scores) {
  const int64_t group = query.size(1) / key.size(1);
  const at::Tensor queries = query.reshape({query.size(0), key.size(1), group * query.size(2), query.size(3)});  // [B,Nk,G*n,D]
  const at::Tensor theirs = group == 1 ? seen : seen.repeat({1, 1, group, 1});                                   // [B,1,G*n,L]
  if (scores.softcap == 0)
    return at::scaled_dot_product_attention(queries, key, value, theirs, 0.0, false, scores.scale).reshape(query.sizes());
  const at::Tensor plain = at::matmul(queries, key.transpose(2, 3)).to(at::kFloat).mul(scores.scale);  // [B,Nk,G*n,L]
  const at::Tensor capped = plain.div(scores.softcap).tanh().mul(scores.softcap);
  const at::Tensor shares = at::softmax(capped.masked_fill(theirs.logical_not(), -std::numeric_limits<float>::infinity()), -1);
  return at::matmul(shares.to(value.scalar_type()), value).reshape(query.sizes());
}

SampleOffsets sample_offsets(std::span<const int64_t> offsets, at::Device device) {
  SampleOffsets result{.here = {offsets.begin(), offsets.end()}, .there = {}, .longest = 0};
  for (size_t s = 0; s + 1 < offsets.size(); ++s) result.longest = std::max(result.longest, offsets[s + 1] - offsets[s]);
  if (has_flash_attention(device)) result.there = numbers_on(device, std::vector<int32_t>(offsets.begin(), offsets.end()));
  return result;
}

at::Tensor ragged_attention(const at::Tensor& query, const at::Tensor& key, const at::Tensor& value, const SampleOffsets& offsets,
                            const AttentionScores& scores) {
  if (takes_flash(query, scores)) {
    const Begins begins{offsets.there, offsets.longest};
    return flash_attention(query, key, value, begins, begins, scores);
  }
  std::vector<at::Tensor> samples;
  for (size_t s = 0; s + 1 < offsets.here.size(); ++s) {
    const int64_t first = offsets.here[s], length = offsets.here[s + 1] - first;
    if (length == 0) continue;
    const auto heads = [&](const at::Tensor& x) { return x.narrow(0, first, length).transpose(0, 1).unsqueeze(0); };
    samples.push_back(causal_attention(heads(query), heads(key), heads(value), scores).squeeze(0).transpose(0, 1));
  }
  return samples.empty() ? query : at::cat(samples, 0);
}

}  // namespace sluice::models::portable
