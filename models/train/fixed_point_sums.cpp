#include "models/train/fixed_point_sums.h"

#include <emmintrin.h>
#include <pthread.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <ctime>
#include <limits>
#include <utility>

#include "base/error.h"
#include "models/kernels/parallel.h"

namespace sluice::models {
namespace {

constexpr double kScale = 4294967296.0;                   // 2^32
constexpr double kLargestAddend = 2305843009213693952.0;  // 2^61, scaled: what is added to a sum within bounds cannot overflow
constexpr int64_t kLargestSum = int64_t{1} << 62;
constexpr int64_t kNotFinite = std::numeric_limits<int64_t>::min();  // in place of each sum of a block that is not
constexpr time_t kPatience = 60;                                     // seconds

int64_t sum_blocks(int64_t floats) { return (floats + kFloatsOfABlock - 1) / kFloatsOfABlock; }

// With the current rounding mode, to the nearest.
int64_t rounded(double value) { return _mm_cvtsd_si64(_mm_set_sd(value)); }

// Whether all is within bounds.
bool add_scaled(int64_t* sums, float* values, int64_t count) {
  bool fits = true;
  for (int64_t i = 0; i < count; ++i) {
    const double scaled = static_cast<double>(values[i]) * kScale;
    const bool is_addend = std::abs(scaled) <= kLargestAddend;
    sums[i] += rounded(is_addend ? scaled : 0);
    fits = fits && is_addend && std::abs(sums[i]) <= kLargestSum;
    values[i] = 0;
  }
  return fits;
}

// Whether all is within bounds.
bool add_sums(int64_t* sums, const int64_t* others, int64_t count) {
  bool fits = true;
  for (int64_t i = 0; i < count; ++i) {
    const bool overflows = __builtin_add_overflow(sums[i], others[i], &sums[i]);
    fits = fits && !overflows && others[i] != kNotFinite && -kLargestSum <= sums[i] && sums[i] <= kLargestSum;
  }
  return fits;
}

// A lock that other processes know too, and that tells when its holder was lost.
class HeldByOneProcess {
 public:
  explicit HeldByOneProcess(pthread_mutex_t& mutex) : mutex_(mutex) {
    int result = ::pthread_mutex_trylock(&mutex_);
    if (result == EBUSY) result = wait();
    if (result == 0) return;
    if (result == EOWNERDEAD) ::pthread_mutex_unlock(&mutex_);  // unusable from now on, for all
    throw UserError("another rank was lost, or was stopped, while it added to gradients that this one has in common with it");
  }
  ~HeldByOneProcess() { ::pthread_mutex_unlock(&mutex_); }
  HeldByOneProcess(const HeldByOneProcess&) = delete;
  HeldByOneProcess& operator=(const HeldByOneProcess&) = delete;

 private:
  int wait() {
    timespec until{};
    ::clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += kPatience;
    return ::pthread_mutex_timedlock(&mutex_, &until);
  }

  pthread_mutex_t& mutex_;
};

}  // namespace

// On a cache line of its own.
struct alignas(64) FixedPointSums::Block {
  pthread_mutex_t mutex;
  bool is_finite;
};

size_t FixedPointSums::bytes_for(int64_t floats) {
  const int64_t blocks = sum_blocks(floats);
  return static_cast<size_t>(blocks) * (kFloatsOfABlock * sizeof(int64_t) + sizeof(Block));
}

FixedPointSums::FixedPointSums(std::shared_ptr<std::byte> memory, int64_t floats) : memory_(std::move(memory)), floats_(floats) {}

void FixedPointSums::set_up() {
  pthread_mutexattr_t kind;
  ::pthread_mutexattr_init(&kind);
  ::pthread_mutexattr_setpshared(&kind, PTHREAD_PROCESS_SHARED);
  ::pthread_mutexattr_setrobust(&kind, PTHREAD_MUTEX_ROBUST);
  for (int64_t index = 0; index < sum_blocks(floats_); ++index) {
    ::pthread_mutex_init(&block(index).mutex, &kind);
    block(index).is_finite = true;
  }
  ::pthread_mutexattr_destroy(&kind);
}

// After the sums.
FixedPointSums::Block& FixedPointSums::block(int64_t index) const {
  auto* const blocks = reinterpret_cast<Block*>(sums() + sum_blocks(floats_) * kFloatsOfABlock);
  return blocks[index];
}

void FixedPointSums::add(FloatRange range, float* values) {
  SLUICE_CHECK(0 <= range.begin && range.begin <= range.end && range.end <= floats_, "sums that are not there");
  if (range.size() == 0) return;
  const int64_t first = range.begin / kFloatsOfABlock, last = (range.end - 1) / kFloatsOfABlock;
  parallel_ranges(last - first + 1, 1, [&](int64_t begin, int64_t end) {
    for (int64_t index = first + begin; index < first + end; ++index) {
      const FloatRange part{std::max(range.begin, index * kFloatsOfABlock), std::min(range.end, (index + 1) * kFloatsOfABlock)};
      add_in_block(part, values + (part.begin - range.begin));
    }
  });
}

void FixedPointSums::add_in_block(FloatRange range, float* values) {
  Block& of = block(range.begin / kFloatsOfABlock);
  const HeldByOneProcess held(of.mutex);
  if (!add_scaled(sums() + range.begin, values, range.size())) of.is_finite = false;
}

void FixedPointSums::take(FloatRange range, float* values) const {
  const int64_t index = range.begin / kFloatsOfABlock;
  SLUICE_CHECK(range.end <= std::min(floats_, (index + 1) * kFloatsOfABlock), "sums of several blocks");
  if (!block(index).is_finite) {
    std::fill_n(values, range.size(), std::numeric_limits<float>::quiet_NaN());
    return;
  }
  const int64_t* const from = sums() + range.begin;
  for (int64_t i = 0; i < range.size(); ++i) values[i] = static_cast<float>(static_cast<double>(from[i]) * (1 / kScale));
}

int64_t* FixedPointSums::given(FloatRange range) {
  for (int64_t begin = range.begin; begin < range.end; begin += kFloatsOfABlock) {
    if (block(begin / kFloatsOfABlock).is_finite) continue;
    std::fill(sums() + begin, sums() + std::min(range.end, begin + kFloatsOfABlock), kNotFinite);
  }
  return sums() + range.begin;
}

void FixedPointSums::add_given(FloatRange range, const int64_t* others) {
  const int64_t blocks = sum_blocks(range.size());
  parallel_ranges(blocks, 1, [&](int64_t first, int64_t last) {
    for (int64_t begin = range.begin + first * kFloatsOfABlock; first < last; ++first, begin += kFloatsOfABlock) {
      const int64_t count = std::min(kFloatsOfABlock, range.end - begin);
      if (!add_sums(sums() + begin, others + (begin - range.begin), count)) block(begin / kFloatsOfABlock).is_finite = false;
    }
  });
}

void FixedPointSums::clear(FloatRange range) {
  if (range.size() == 0) return;
  std::fill(sums() + range.begin, sums() + range.end, 0);
  for (int64_t index = range.begin / kFloatsOfABlock; index * kFloatsOfABlock < range.end; ++index) block(index).is_finite = true;
}

}  // namespace sluice::models
