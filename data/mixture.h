#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace sluice::data {

/// In which order rows are taken from several sources, so that each gets its share: of the first n rows, source i has given less
/// than one more or less than n * weight[i] / (sum of weights), for every n. Which of several sources that are equally due comes
/// first is fixed by the seed. What comes at a position depends on nothing else, so there is no state to save.
///
/// Shares are exact for weights of up to six decimals whose common period is at most a million rows (0.7 and 0.3: 10 rows);
/// others are rounded to millionths. Memory: 2 bytes a row of the period. Immutable: const use from many threads. Source:
/// Tijdeman 1980, "The chairman assignment problem", Discrete Mathematics 32.
class Mixture {
 public:
  /// `weights`: 1 to 1000 numbers, each finite and above 0.
  Mixture(std::span<const double> weights, uint64_t seed);

  struct Draw {
    size_t source = 0;
    uint64_t index = 0;  // how many rows that source has given before
  };
  Draw at(uint64_t position) const;

  static constexpr size_t kMostSources = 1000;

 private:
  std::vector<uint64_t> shares_;    // [sources] rows of each in a period
  std::vector<uint16_t> schedule_;  // [period]
  std::vector<uint32_t> counts_;    // [period / kStride, sources] rows of each before every kStride-th
};

}  // namespace sluice::data
