#include "nodes/train/router_metrics.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace sluice::nodes {

RouterMetrics::RouterMetrics(TrainedModel& model, std::string group, const engine::NodeResources& resources)
    : routers_(model.transformer().routers().get()),
      experts_(model.transformer().config().experts.count),
      first_(resources.world.rank == 0),
      group_(std::move(group)),
      metrics_(*resources.metrics),
      totals_(*resources.totals) {}

void RouterMetrics::expect(std::vector<double> counted) {
  if (routers_ != nullptr) routers_->expect(std::move(counted));
}

void RouterMetrics::record_passes() {
  if (routers_ == nullptr) return;
  const models::RouterRecord record = routers_->take();
  if (record.samples.empty()) return;
  for (const models::RouterRecord::Sample& sample : record.samples) {
    metrics_.mean(group_ + "/entropy_mean", sample.entropy, static_cast<double>(sample.tokens));
    metrics_.mean(group_ + "/aux_loss", sample.loss, sample.counted);
    metrics_.mean(group_ + "/rerouted", static_cast<double>(sample.rerouted) / static_cast<double>(sample.tokens),
                  static_cast<double>(sample.tokens));
  }
  std::vector<int64_t>& tokens = totals_.my_counts(group_);
  tokens.resize(std::max(tokens.size(), record.through.size()));
  for (size_t i = 0; i < record.through.size(); ++i) tokens[i] += record.through[i];
}

void RouterMetrics::record_step() {
  if (routers_ == nullptr || experts_ == 0 || !first_) return;
  const std::span<const int64_t> all = totals_.counts_of_all(group_);
  const auto experts = static_cast<size_t>(experts_);
  for (size_t first = 0; first < all.size(); first += experts) {
    const auto layer = all.subspan(first, experts);
    const auto tokens = std::accumulate(layer.begin(), layer.end(), int64_t{0});
    if (tokens == 0) continue;  // no gradient goes through it
    const double load = static_cast<double>(experts_ * *std::ranges::max_element(layer)) / static_cast<double>(tokens);
    metrics_.mean(group_ + "/load_max", load);
    metrics_.maximum(group_ + "/load_max_worst_layer", load);
    metrics_.mean(group_ + "/experts_idle", static_cast<double>(std::ranges::count(layer, 0)) / static_cast<double>(experts_));
  }
}

std::vector<double> counted_actions(const engine::Layout& layout, std::span<const float> mask, std::span<const size_t> chosen) {
  std::vector<double> counted;
  for (const size_t sample : chosen) {
    const auto first = static_cast<size_t>(layout.action_offsets[sample]);
    const auto actions = static_cast<size_t>(layout.action_offsets[sample + 1]) - first;
    const auto weights = mask.empty() ? mask : mask.subspan(first, actions);
    counted.push_back(mask.empty() ? static_cast<double>(actions) : std::accumulate(weights.begin(), weights.end(), 0.0));
  }
  return counted;
}

}  // namespace sluice::nodes
