#pragma once

#include <cstddef>
#include <vector>

namespace sluice::comm {

/// How fast the bytes of a version have come when they came fastest.
///
/// Pieces come over several connections at a time, so some are complete at nearly the same moment. What counts is therefore a
/// stretch of an eighth of the version, and at least 16 MiB; of a version that is smaller, all of it. Used under one lock.
class ArrivalRate {
 public:
  /// A piece is complete. `seconds` of one clock, which do not become less.
  void add(double seconds, size_t bytes) { arrivals_.push_back({seconds, bytes}); }

  /// Bytes a second; 0 where all came at once, or nothing did. The first piece says only when the others began to come.
  double fastest() const;

 private:
  struct Arrival {
    double seconds = 0;
    size_t bytes = 0;
  };

  std::vector<Arrival> arrivals_;
};

}  // namespace sluice::comm
