#include "models/kernels/loop_sharing.h"

#include <algorithm>

namespace sluice::models {
namespace {

constexpr int64_t kMillisecond = 1'000'000;
constexpr int64_t kMeasuredOf = 11;                     // one of so many loops: to ask for processor time costs 0.2 us a range;
                                                        // a prime: loops come in rounds, whose every loop has its turn
constexpr int64_t kEnough = 4 * kMillisecond;           // of measured loops for a verdict: a lost core costs some milliseconds
constexpr int64_t kFirstAlone = 100 * kMillisecond;     // twice as long after each trial that fails
constexpr int64_t kLongestAlone = 1600 * kMillisecond;  // what a neighbour that has ended may cost

}  // namespace

LoopSharing::Loop LoopSharing::next(int64_t now_ns) {
  if (now_ns < alone_until_ns_) return Loop::kAlone;
  const bool on_trial = alone_ns_ > 0;  // decided soon
  return on_trial || loops_++ % kMeasuredOf == 0 ? Loop::kMeasured : Loop::kShared;
}

void LoopSharing::measured(int64_t now_ns, int64_t took_ns, int64_t worked_ns) {
  took_ns_ += took_ns;
  worked_ns_ += worked_ns;
  if (took_ns_ >= kEnough) judge(now_ns);
}

void LoopSharing::judge(int64_t now_ns) {
  if (took_ns_ > worked_ns_) {
    alone_ns_ = std::clamp(2 * alone_ns_, kFirstAlone, kLongestAlone);
    alone_until_ns_ = now_ns + alone_ns_;
  } else {
    alone_ns_ = 0;
  }
  took_ns_ = worked_ns_ = 0;
}

}  // namespace sluice::models
