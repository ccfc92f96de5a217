#include "models/portable/likeliest_tokens.h"

#include <ATen/ops/arange.h>
#include <ATen/ops/full.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/searchsorted.h>

#include <algorithm>
#include <cmath>
#include <tuple>

namespace sluice::models::portable {
namespace {

// Integers that all differ and are in the order of logits, and for equal ones of ids from the last: [R,V] int64. The upper half
// is the order of the logit: the bits of a float are in its order, but for the negative ones, where it is turned round.
at::Tensor keys_of(const at::Tensor& logits) {
  const int64_t last = logits.size(1) - 1;
  const at::Tensor bits = logits.view(at::kInt);
  const at::Tensor order = bits.bitwise_right_shift(31).bitwise_and_(0x7fffffff).bitwise_xor_(bits);
  return order.to(at::kLong).mul_(int64_t{1} << 32).add_(at::arange(last, -1, -1, order.options().dtype(at::kLong)));
}

}  // namespace

at::Tensor likeliest_ids(const at::Tensor& logits, int64_t count) {
  const int64_t last = logits.size(1) - 1;
  const at::Tensor one_zero = logits.add(0.0);  // -0 is equal to 0
  if (count > last) return std::get<1>(one_zero.sort(/*stable=*/true, 1, /*descending=*/true));
  return std::get<0>(keys_of(one_zero).topk(count)).bitwise_and_(0xffffffff).neg_().add_(last);
}

at::Tensor drawn_from_likeliest(const at::Tensor& logits, const at::Tensor& top, const SoftenedRows& rows,
                                const at::Tensor& uniform, const SamplingOptions& options) {
  const int64_t most = options.top_k > 0 ? std::min(options.top_k, logits.size(1)) : logits.size(1);
  const at::Tensor ids = likeliest_ids(logits, most);
  const at::Tensor mass = rows.weights.gather(1, ids).to(at::kDouble).cumsum_(1);  // [R,most] of each prefix
  // The place of the last token of the shortest prefix with this mass.
  const auto place_of = [&](const at::Tensor& wanted) { return at::searchsorted(mass, wanted).clamp_max_(most - 1); };
  at::Tensor last = at::full({logits.size(0), 1}, most - 1, ids.options());  // of those that are kept
  if (options.top_p < 1) last = place_of(mass.narrow(1, most - 1, 1).mul(options.top_p));
  if (options.min_p > 0) {
    const double temperature = options.temperature == 0 ? 1.0 : options.temperature;
    const at::Tensor floor = top.add(temperature * std::log(options.min_p));
    last = at::minimum(last, logits.ge(floor).sum(1, /*keepdim=*/true).sub_(1));
  }
  const at::Tensor place = place_of(mass.gather(1, last.clamp_min(0)).mul_(uniform));
  return ids.gather(1, at::minimum(place, last).clamp_min_(0));
}

}  // namespace sluice::models::portable
