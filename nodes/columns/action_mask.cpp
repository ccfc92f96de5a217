#include "nodes/columns/action_mask.h"

#include "nodes/columns/columns.h"

namespace sluice::nodes {

using engine::Range;

ActionMask::ActionMask(const engine::MicroBatch& batch) {
  if (batch.has(columns::kMask.spec())) weights_ = batch.read(columns::kMask);
}

size_t ActionMask::kept(Range actions) const {
  size_t kept = 0;
  for (size_t a = actions.begin; a < actions.end; ++a) kept += keeps(a) ? 1 : 0;
  return kept;
}

std::optional<size_t> ActionMask::last_kept(Range actions) const {
  for (size_t a = actions.end; a-- > actions.begin;) {
    if (keeps(a)) return a;
  }
  return std::nullopt;
}

double ActionMask::total(size_t actions) const {
  double total = 0;
  for (size_t a = 0; a < actions; ++a) total += weight(a);
  return total;
}

std::vector<bool> counted_samples(const engine::MicroBatch& batch) {
  const ActionMask mask(batch);
  std::vector<bool> counted;
  for (const Range actions : batch.actions_by_sample()) counted.push_back(mask.counts(actions));
  return counted;
}

void zero_masked(std::span<float> values, const ActionMask& mask) {
  for (size_t a = 0; a < values.size(); ++a) {
    if (!mask.keeps(a)) values[a] = 0;
  }
}

}  // namespace sluice::nodes
