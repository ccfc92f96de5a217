#include "data/mixture.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>

#include "base/error.h"
#include "base/numbers/random.h"

namespace sluice::data {
namespace {

constexpr uint64_t kLongestPeriod = 1'000'000;
constexpr uint64_t kShortestTable = 4096;  // short periods are repeated, so that ties fall in other ways
constexpr size_t kStride = 256;
constexpr uint32_t kTieStream = std::numeric_limits<uint32_t>::max() - 1;  // a group that no iteration has

// The weights as whole numbers without a common divisor, if up to six decimals and the longest period hold them.
std::optional<std::vector<uint64_t>> whole_shares(std::span<const double> weights) {
  for (double scale = 1; scale <= 1e6; scale *= 10) {
    std::vector<uint64_t> shares;
    for (const double weight : weights) {
      const double scaled = weight * scale, nearest = std::round(scaled);
      if (nearest < 1 || nearest > 1e12 || std::abs(scaled - nearest) > 1e-9 * nearest) break;
      shares.push_back(static_cast<uint64_t>(nearest));
    }
    if (shares.size() < weights.size()) continue;
    uint64_t divisor = 0;
    for (const uint64_t share : shares) divisor = std::gcd(divisor, share);
    for (uint64_t& share : shares) share /= divisor;
    if (std::accumulate(shares.begin(), shares.end(), uint64_t{0}) <= kLongestPeriod) return shares;
  }
  return std::nullopt;
}

// In millionths, at least one each.
std::vector<uint64_t> rounded_shares(std::span<const double> weights) {
  const double largest = *std::ranges::max_element(weights);
  double sum = 0;  // of weights / largest, which cannot overflow
  for (const double weight : weights) sum += weight / largest;
  std::vector<uint64_t> shares;
  for (const double weight : weights) {
    const double share = std::floor(weight / largest / sum * static_cast<double>(kLongestPeriod));
    shares.push_back(std::max<uint64_t>(1, static_cast<uint64_t>(share)));
  }
  return shares;
}

// Who is next: of the sources that are far enough behind, the one that would be late first.
class Chairman {
 public:
  Chairman(const std::vector<uint64_t>& shares, uint64_t seed)
      : shares_(shares.begin(), shares.end()),
        behind_(shares.size(), 0),
        period_(std::accumulate(shares_.begin(), shares_.end(), int64_t{0})),
        ties_(seed, 0, kTieStream) {}

  size_t next() {
    const int64_t scale = std::max<int64_t>(1, 2 * static_cast<int64_t>(shares_.size()) - 2);
    std::optional<size_t> best;
    uint32_t tied = 0;
    for (size_t i = 0; i < shares_.size(); ++i) {
      behind_[i] += shares_[i];
      if (scale * behind_[i] < period_) continue;
      const int64_t order = best ? slack(i, scale) * shares_[*best] - slack(*best, scale) * shares_[i] : -1;
      tied = order < 0 ? 1 : order == 0 ? tied + 1 : tied;
      if (order < 0 || (order == 0 && ties_.below(tied) == 0)) best = i;
    }
    behind_[*best] -= period_;
    return *best;
  }

 private:
  // scale * (1 - 1/scale - behind) in rows of the period; divided by the share it is the time until the source is late.
  int64_t slack(size_t i, int64_t scale) const { return (scale - 1) * period_ - scale * behind_[i]; }

  std::vector<int64_t> shares_;
  std::vector<int64_t> behind_;  // rows that a source should have given and has not, times the period
  int64_t period_;
  RandomStream ties_;
};

}  // namespace

Mixture::Mixture(std::span<const double> weights, uint64_t seed) {
  SLUICE_CHECK(!weights.empty() && weights.size() <= kMostSources, "a mixture has 1 to 1000 sources");
  for (const double weight : weights) SLUICE_CHECK(std::isfinite(weight) && weight > 0, "a weight is above 0");
  const auto exact = whole_shares(weights);
  shares_ = exact ? *exact : rounded_shares(weights);
  const uint64_t period = std::accumulate(shares_.begin(), shares_.end(), uint64_t{0});
  const uint64_t repeats = (kShortestTable + period - 1) / period;
  Chairman chairman(shares_, seed);
  for (uint64_t& share : shares_) share *= repeats;

  std::vector<uint32_t> given(shares_.size(), 0);
  schedule_.reserve(period * repeats);
  for (uint64_t i = 0; i < period * repeats; ++i) {
    if (i % kStride == 0) counts_.insert(counts_.end(), given.begin(), given.end());
    const size_t source = chairman.next();
    schedule_.push_back(static_cast<uint16_t>(source));
    ++given[source];
  }
}

Mixture::Draw Mixture::at(uint64_t position) const {
  const uint64_t round = position / schedule_.size();
  const size_t place = static_cast<size_t>(position % schedule_.size());
  const size_t source = schedule_[place];
  const size_t mark = place / kStride;
  const auto since = std::ranges::count(schedule_.begin() + static_cast<ptrdiff_t>(mark * kStride),
                                        schedule_.begin() + static_cast<ptrdiff_t>(place), schedule_[place]);
  return {source, round * shares_[source] + counts_[mark * shares_.size() + source] + static_cast<uint64_t>(since)};
}

}  // namespace sluice::data
