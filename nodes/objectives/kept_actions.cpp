#include "nodes/objectives/kept_actions.h"

#include <ATen/ops/ones_like.h>
#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros.h>

namespace sluice::nodes {

KeptActions::KeptActions(const at::Tensor& mask, const std::vector<int64_t>& offsets, at::TensorOptions options) {
  std::vector<double> weights;  // [A]
  if (mask.defined()) {
    const at::Tensor host = mask.detach().to(at::kCPU, at::kDouble).contiguous();
    weights.assign(host.const_data_ptr<double>(), host.const_data_ptr<double>() + host.numel());
  }
  std::vector<int64_t> kept, sample_of;
  for (size_t sample = 0; sample + 1 < offsets.size(); ++sample) {
    const size_t before = kept.size();
    for (int64_t action = offsets[sample]; action < offsets[sample + 1]; ++action) {
      if (!weights.empty() && weights[static_cast<size_t>(action)] == 0) continue;
      kept.push_back(action);
      sample_of.push_back(samples_);
    }
    if (kept.size() > before) ++samples_;
  }
  count_ = static_cast<int64_t>(kept.size());
  const auto index_options = options.dtype(at::kLong);
  sample_of_ = at::tensor(sample_of, index_options);
  if (!mask.defined()) return;
  kept_ = at::tensor(kept, index_options);
  weights_ = mask.index_select(0, kept_).to(options.dtype());
}

at::Tensor KeptActions::of(const at::Tensor& entries) const {
  return entries.defined() && kept_.defined() ? entries.index_select(0, kept_) : entries;
}

at::Tensor KeptActions::sum_by_sample(const at::Tensor& x) const {
  return at::zeros({samples_}, x.options()).index_add(0, sample_of_, x);
}

at::Tensor KeptActions::mean_by_sample(const at::Tensor& x) const {
  return sum_by_sample(weighted(x)).div(sum_by_sample(weighted(at::ones_like(x))));
}

at::Tensor KeptActions::to_actions(const at::Tensor& by_sample) const { return by_sample.index_select(0, sample_of_); }

double KeptActions::total_weight() const {
  return weights_.defined() ? weights_.to(at::kDouble).sum().item().toDouble() : static_cast<double>(count_);
}

}  // namespace sluice::nodes
