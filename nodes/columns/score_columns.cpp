#include "nodes/columns/score_columns.h"

#include <cmath>

#include "base/error.h"
#include "nodes/columns/action_mask.h"

namespace sluice::nodes {

using engine::Range;

engine::ColumnSpec score_column(const std::string& name) { return {name, engine::DType::kFloat32, engine::Extent::kSample}; }

std::string name_of_sample(const engine::MicroBatch& batch, size_t sample) {
  const std::vector<Range> groups = batch.layout().samples_by_group();
  size_t group = 0;
  while (groups[group].end <= sample) ++group;
  return "sample " + std::to_string(sample - groups[group].begin) + " of group " + std::to_string(batch.group_index(group));
}

void require_finite_entry(float number, const std::string& name, const std::function<std::string()>& whom) {
  if (std::isfinite(number)) return;
  throw UserError("column '" + name + "' is " + (std::isnan(number) ? "nan" : "infinite") + " for " + whom(),
                  "the node that writes it has to give finite numbers only");
}

std::span<const float> finite_scores(const engine::MicroBatch& batch, const std::string& name) {
  const std::span<const float> scores = batch.read(score_column(name)).entries<float>();
  for (size_t s = 0; s < scores.size(); ++s) require_finite_entry(scores[s], name, [&] { return name_of_sample(batch, s); });
  return scores;
}

std::span<const float> scores_that_count(const engine::MicroBatch& batch, const std::string& name) {
  const std::span<const float> scores = batch.read(score_column(name)).entries<float>();
  const std::vector<bool> counted = counted_samples(batch);
  for (size_t s = 0; s < scores.size(); ++s) {
    if (counted[s]) require_finite_entry(scores[s], name, [&] { return name_of_sample(batch, s); });
  }
  return scores;
}

}  // namespace sluice::nodes
