#pragma once

#include <cstdint>

namespace sluice::models {

/// Whether other threads help with the loops of a thread. Beside other programs they may make it slower: a thread that loses its
/// core in the middle of a range is waited for until it has one again, which takes milliseconds, and the ranges of a decode step
/// take microseconds. So some loops are measured: how long the loop took, against the processor time that all threads spent in
/// it, which is what one thread alone would take. Where sharing took longer, loops stay on their thread for a while; then it is
/// tried again. Bits never depend on it: the ranges are the same whoever works on them.
///
/// Belongs to one thread. Knows no clock: the caller tells the time.
class LoopSharing {
 public:
  enum class Loop { kShared, kMeasured, kAlone };

  /// What the loop is that begins now; after one that is measured comes measured().
  Loop next(int64_t now_ns);

  /// took_ns: from its begin to its end. worked_ns: processor time of all threads together.
  void measured(int64_t now_ns, int64_t took_ns, int64_t worked_ns);

 private:
  void judge(int64_t now_ns);

  int64_t took_ns_ = 0, worked_ns_ = 0;  // of the loops that were measured since the last verdict
  int64_t alone_ns_ = 0;                 // how long sharing is left alone after the next bad verdict; 0: the last was good
  int64_t alone_until_ns_ = 0;
  int64_t loops_ = 0;
};

}  // namespace sluice::models
