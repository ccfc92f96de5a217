#include "nodes/statistics/whitening.h"

#include <cmath>

#include "base/error.h"

namespace sluice::nodes {
namespace {

using Parts = std::vector<std::span<float>>;
using Masks = std::vector<std::span<const float>>;

// Calls visit(entry, weight) for each entry that weighs something.
template <class Visit>
void for_each_counting(const Parts& parts, const Masks& masks, Visit visit) {
  SLUICE_CHECK(masks.empty() || masks.size() == parts.size(), "there is a mask for some of the parts only");
  for (size_t i = 0; i < parts.size(); ++i) {
    const std::span<const float> mask = masks.empty() ? std::span<const float>() : masks[i];
    SLUICE_CHECK(mask.empty() || mask.size() == parts[i].size(), "a mask is not as long as its part");
    for (size_t e = 0; e < parts[i].size(); ++e) {
      const double weight = mask.empty() ? 1.0 : mask[e];
      if (weight != 0) visit(parts[i][e], weight);
    }
  }
}

}  // namespace

void add_moments(const Parts& parts, const Masks& masks, ExactMoments& sums) {
  for_each_counting(parts, masks, [&](double x, double weight) { sums.add(x, weight); });
}

double whitening_scale(const ExactMoments& sums, const WhiteningParams& options) {
  if (sums.count() <= 1) return 1;
  return 1 / std::sqrt(moments_of(sums, options.whiten_variance).variance + options.whiten_epsilon);
}

void whiten(const Parts& parts, const ExactMoments& sums, const WhiteningParams& options) {
  if (sums.count() <= 0) return;
  const double mean = sums.mean(), scale = whitening_scale(sums, options);
  const double back = options.whiten_mean ? 0 : mean;
  for (const auto part : parts) {
    for (float& x : part) {
      const double centred = x - mean;
      x = static_cast<float>((centred == 0 ? 0 : centred * scale) +
                             back);  // 0 also where an epsilon of 0 makes the scale infinite
    }
  }
}

}  // namespace sluice::nodes
