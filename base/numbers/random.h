#pragma once

#include <array>
#include <cstdint>

namespace sluice {

/// Philox 4x32-10: a counter-based generator (Salmon et al. 2011, "Parallel random numbers: as easy as 1, 2, 3").
/// The same key and counter give the same four words on every machine and thread; there is no state to share.
std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key);

/// A stream of random numbers that is named by where it is used, e.g. (seed, iteration, group, sample).
/// A value type; not thread-safe. Two streams with another seed or name are independent.
class RandomStream {
 public:
  RandomStream(uint64_t seed, uint64_t iteration, uint32_t group = 0, uint32_t sample = 0);

  uint32_t next_bits();            // 32 random bits
  double uniform();                // in [0, 1), 53 bits
  uint64_t below(uint64_t bound);  // unbiased, 0 <= result < bound; bound > 0
  double normal();                 // mean 0, standard deviation 1

  /// As if normal() had been called so many times, at the cost of none. Of a stream that has given nothing but those.
  void skip_normals(uint32_t count);

 private:
  std::array<uint32_t, 2> key_;
  std::array<uint32_t, 4> counter_;
  std::array<uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace sluice
