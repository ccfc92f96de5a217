#include "models/portable/softened_rows.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/minimum.h>
#include <ATen/ops/searchsorted.h>
#include <ATen/ops/sub.h>

namespace sluice::models::portable {

SoftenedRows softened(const at::Tensor& logits, const at::Tensor& top, double scale) {
  constexpr int64_t kRun = SoftenedRows::kRun;
  const int64_t rows = logits.size(0), size = logits.size(1), runs = (size + kRun - 1) / kRun, behind = runs * kRun - size;
  const at::Tensor weights = at::empty({rows, runs * kRun}, logits.options());
  at::Tensor inside = weights.narrow(1, 0, size);
  at::sub_out(inside, logits, top).mul_(scale).exp_();
  if (behind > 0) weights.narrow(1, size, behind).zero_();
  return {weights, weights.view({rows, runs, kRun}).sum(2, /*keepdim=*/false, at::kDouble)};
}

at::Tensor drawn_from_all(const SoftenedRows& rows, const at::Tensor& uniform) {
  constexpr int64_t kRun = SoftenedRows::kRun;
  const int64_t count = rows.totals.size(0), runs = rows.totals.size(1);
  const at::Tensor mass = rows.totals.cumsum(1);                       // [R,runs] to the end of each run
  const at::Tensor wanted = mass.narrow(1, runs - 1, 1).mul(uniform);  // [R,1]
  const at::Tensor run = at::searchsorted(mass, wanted, /*out_int32=*/false, /*right=*/true).clamp_max_(runs - 1);
  const at::Tensor before = mass.sub(rows.totals).gather(1, run);
  const at::Tensor chosen = run.unsqueeze(2).expand({count, 1, kRun});
  const at::Tensor weights = rows.weights.view({count, runs, kRun}).gather(1, chosen).squeeze(1);
  const at::Tensor reached = weights.cumsum(1, at::kDouble);  // [R,kRun]
  const at::Tensor place = at::searchsorted(reached, wanted.sub(before), /*out_int32=*/false, /*right=*/true);
  // Rounding may leave a little over after the last weight.
  const at::Tensor last_possible = at::searchsorted(reached, reached.narrow(1, kRun - 1, 1).contiguous());
  return at::minimum(place, last_possible).add_(run, kRun);
}

}  // namespace sluice::models::portable
