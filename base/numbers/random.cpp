#include "base/numbers/random.h"

#include <cmath>
#include <numbers>

namespace sluice {
namespace {

// Mixes 64 bits so that near seeds and near names give far keys (Steele et al. 2014, SplitMix64's finaliser).
uint64_t mixed(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

}  // namespace

std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t product0 = uint64_t{0xD2511F53u} * counter[0];
    const uint64_t product1 = uint64_t{0xCD9E8D57u} * counter[2];
    counter = {static_cast<uint32_t>(product1 >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(product1),
               static_cast<uint32_t>(product0 >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(product0)};
    key[0] += 0x9E3779B9u;
    key[1] += 0xBB67AE85u;
  }
  return counter;
}

RandomStream::RandomStream(uint64_t seed, uint64_t iteration, uint32_t group, uint32_t sample)
    : counter_{0, sample, group, static_cast<uint32_t>(iteration)} {
  const uint64_t key = mixed(seed ^ mixed(iteration >> 32));
  key_ = {static_cast<uint32_t>(key), static_cast<uint32_t>(key >> 32)};
}

uint32_t RandomStream::next_bits() {
  if (used_ == 4) {
    block_ = philox(counter_, key_);
    ++counter_[0];
    used_ = 0;
  }
  return block_[used_++];
}

double RandomStream::uniform() {
  const uint64_t high = next_bits(), low = next_bits();
  return static_cast<double>((high << 21) ^ (low >> 11)) * 0x1.0p-53;
}

uint64_t RandomStream::below(uint64_t bound) {
  const uint64_t reject = -bound % bound;  // the lowest 2^64 mod bound values would make small results likelier
  for (;;) {
    const uint64_t bits = uint64_t{next_bits()} << 32 | next_bits();
    if (bits >= reject) return bits % bound;
  }
}

double RandomStream::normal() {
  const double radius = std::sqrt(-2.0 * std::log(1.0 - uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

void RandomStream::skip_normals(uint32_t count) { counter_[0] += count; }  // each takes the four words of a block

}  // namespace sluice
