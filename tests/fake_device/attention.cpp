#include "tests/fake_device/attention.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/ops/arange.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/empty_like.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/softmax.h>
#include <torch/library.h>

#include <limits>
#include <optional>
#include <tuple>
#include <vector>

#include "models/portable/paged_attention.h"
#include "tests/fake_device/memory.h"
#include "tests/fake_device/operators.h"

namespace sluice::fake {
namespace {

using at::Tensor;

// Each token sees itself and what is before it in its sample, `before` tokens at most; queries are the last of their sample's
// tokens. query [T,Nq,D], key, value [L,Nk,D] float32
Tensor attended(const Tensor& query, const Tensor& key, const Tensor& value, const Tensor& of_queries, const Tensor& of_keys,
                double scale, std::optional<int64_t> before) {
  std::vector<Tensor> samples;
  const int64_t group = query.size(1) / key.size(1);
  const auto* const queries = of_queries.const_data_ptr<int32_t>();
  const auto* const keys = of_keys.const_data_ptr<int32_t>();
  for (int64_t s = 0; s + 1 < of_queries.numel(); ++s) {
    const int64_t count = queries[s + 1] - queries[s], length = keys[s + 1] - keys[s];
    if (count == 0) continue;
    const auto heads = [](const Tensor& x, int64_t first, int64_t size) {
      return x.narrow(0, first, size).transpose(0, 1);
    };  // [N,n,D]
    const auto shared = [&](const Tensor& x) { return heads(x, keys[s], length).repeat_interleave(group, 0); };
    const Tensor place = at::arange(length), back = place.narrow(0, length - count, count).unsqueeze(1).sub(place.unsqueeze(0));
    const Tensor seen = before ? back.ge(0).logical_and(back.le(*before)) : back.ge(0);
    const Tensor scores = at::matmul(heads(query, queries[s], count), shared(key).transpose(1, 2)).mul(scale);
    const Tensor shares = at::softmax(scores.masked_fill(seen.logical_not(), -std::numeric_limits<float>::infinity()), -1);
    samples.push_back(at::matmul(shares, shared(value)).transpose(0, 1));
  }
  return samples.empty() ? query : at::cat(samples);
}

Tensor wide(const Tensor& x) { return x.to(at::kFloat); }

std::optional<int64_t> number(const std::optional<c10::SymInt>& size) {
  return size && size->expect_int() >= 0 ? std::optional(size->expect_int()) : std::nullopt;
}

void check_supported(const Tensor& query, const std::optional<Tensor>& offsets, bool is_causal,
                     const std::optional<double>& scale) {
  TORCH_CHECK(is_causal && scale && offsets && offsets->is_privateuseone() && offsets->scalar_type() == at::kInt &&
                  query.scalar_type() == at::kBFloat16,
              "flash attention of the fake device is causal, over ragged bfloat16");
}

std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> flash_forward(const Tensor& query, const Tensor& key, const Tensor& value,
                                                                 const std::optional<Tensor>& offsets,
                                                                 const std::optional<Tensor>& of_keys, c10::SymInt, c10::SymInt,
                                                                 double, bool is_causal, bool, std::optional<double> scale,
                                                                 std::optional<c10::SymInt> before, std::optional<c10::SymInt>,
                                                                 const std::optional<Tensor>&, const std::optional<Tensor>&) {
  check_supported(query, offsets, is_causal, scale);
  const Tensor out = at::empty_like(query), sums = at::empty({query.size(1), query.size(0)}, query.options().dtype(at::kFloat));
  queue_on(query.device(), [q = host_view(query), k = host_view(key), v = host_view(value), o = host_view(*offsets),
                            of_keys = host_view(*of_keys), to = host_view(out), scale = *scale, before = number(before)] {
    to.copy_(attended(wide(q), wide(k), wide(v), o, of_keys, scale, before));
  });
  const Tensor none = at::empty({0}, query.options().dtype(at::kLong));
  return {out, sums, none, none, at::empty({0}, query.options())};
}

std::tuple<Tensor, Tensor, Tensor> flash_backward(const Tensor& grad, const Tensor& query, const Tensor& key, const Tensor& value,
                                                  const Tensor&, const Tensor&, const Tensor& offsets, const Tensor&, c10::SymInt,
                                                  c10::SymInt, double, bool is_causal, const Tensor&, const Tensor&,
                                                  std::optional<double> scale, std::optional<c10::SymInt> before,
                                                  std::optional<c10::SymInt>) {
  check_supported(query, offsets, is_causal, scale);
  const Tensor of_query = at::empty_like(query), of_key = at::empty_like(key), of_value = at::empty_like(value);
  queue_on(query.device(), [g = host_view(grad), q = host_view(query), k = host_view(key), v = host_view(value),
                            o = host_view(offsets), to_query = host_view(of_query), to_key = host_view(of_key),
                            to_value = host_view(of_value), scale = *scale, before = number(before)] {
    const at::AutoGradMode with_gradient(true);
    const Tensor in_query = wide(q).requires_grad_(), in_key = wide(k).requires_grad_(), in_value = wide(v).requires_grad_();
    attended(in_query, in_key, in_value, o, o, scale, before).backward(wide(g));
    const at::NoGradGuard no_gradient;
    to_query.copy_(in_query.grad()), to_key.copy_(in_key.grad()), to_value.copy_(in_value.grad());
  });
  return {of_query, of_key, of_value};
}

Tensor wide_mm(const Tensor& a, const Tensor& b, at::ScalarType dtype) {
  const Tensor out = at::empty({a.size(0), b.size(1)}, a.options().dtype(dtype));
  queue_on(a.device(), [a = host_view(a), b = host_view(b), to = host_view(out)] { to.copy_(at::mm(wide(a), wide(b))); });
  return out;
}

// What our own kernels do on a GPU.
Tensor paged_decode(const Tensor& query, const Tensor& keys, const Tensor& values, const Tensor& table, const Tensor& positions,
                    double scale, double softcap, int64_t window) {
  const Tensor out = at::empty_like(query);
  queue_on(query.device(), [q = host_view(query), k = host_view(keys), v = host_view(values), t = host_view(table),
                            p = host_view(positions), to = host_view(out),
                            scores = models::AttentionScores{.scale = scale, .softcap = softcap, .window = window}] {
    to.copy_(models::portable::paged_attention(wide(q).unsqueeze(1), wide(k), wide(v), t, p.unsqueeze(1), scores).squeeze(1));
  });
  return out;
}

}  // namespace

void add_own_kernels(torch::Library& ours) { ours.impl("paged_decode_attention", TORCH_FN(paged_decode)); }

void add_attention(torch::Library& aten) {
  aten.impl("_flash_attention_forward", TORCH_FN(flash_forward));
  aten.impl("_flash_attention_backward", TORCH_FN(flash_backward));
  aten.impl("mm.dtype", TORCH_FN(wide_mm));
}

}  // namespace sluice::fake
