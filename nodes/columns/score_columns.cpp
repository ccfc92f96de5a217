#include "nodes/columns/score_columns.h"

#include <cmath>

#include "base/error.h"

namespace sluice::nodes {

using engine::Range;

engine::ColumnSpec score_column(const std::string& name) { return {name, engine::DType::kFloat32, engine::Extent::kSample}; }

std::span<const float> finite_scores(const engine::MicroBatch& batch, const std::string& name) {
  const std::span<const float> scores = batch.read(score_column(name)).entries<float>();
  const std::vector<Range> samples = batch.layout().samples_by_group();
  for (size_t g = 0; g < samples.size(); ++g) {
    for (size_t s = samples[g].begin; s < samples[g].end; ++s) {
      if (std::isfinite(scores[s])) continue;
      throw UserError("column '" + name + "' is " + (std::isnan(scores[s]) ? "nan" : "infinite") + " for sample " +
                          std::to_string(s - samples[g].begin) + " of group " + std::to_string(batch.group_index(g)),
                      "the node that writes it has to give every sample a finite score");
    }
  }
  return scores;
}

}  // namespace sluice::nodes
