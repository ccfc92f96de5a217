#pragma once

#include <chrono>
#include <cstdint>

namespace sluice::engine {

/// How long a run that has failed waits for what its nodes are at: until one must be taken to hang. While a node waits for its
/// model to be on the disk nothing hangs, however slow the disk. Owned and used by the thread that waits; nothing here fails.
class Patience {
 public:
  static constexpr auto kAfterStall = std::chrono::seconds(3);    // one node hangs, or another rank is lost: for the others
  static constexpr auto kAfterFailure = std::chrono::seconds(8);  // for all
  static constexpr auto kForWriting = std::chrono::seconds(3600);

  /// To be asked again and again from the failure on. `saves`: a node waits for its model to be written.
  bool is_over(int64_t now_ns, bool stalled, bool saves) {
    if (asked_ns_ >= 0) (saves ? written_ns_ : waited_ns_) += now_ns - asked_ns_;
    asked_ns_ = now_ns;
    const std::chrono::nanoseconds grace = stalled ? kAfterStall : kAfterFailure;
    return waited_ns_ >= grace.count() || written_ns_ >= std::chrono::nanoseconds(kForWriting).count();
  }

 private:
  int64_t asked_ns_ = -1;                   // when it was asked last
  int64_t waited_ns_ = 0, written_ns_ = 0;  // since the failure
};

}  // namespace sluice::engine
