#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "engine/observe/slice_rows.h"
#include "engine/ranks/rank_clock.h"

namespace sluice::engine {

/// What another rank than 0 gives to trace.json, which rank 0 writes: the slices of its work, on the clock of rank 0. A plain
/// value.
struct RankSlices {
  int rank = 0;
  int64_t begin_ns = 0;  // when that rank's run began, on the steady clock of rank 0
  int64_t error_ns = 0;  // of begin_ns, at most
  int64_t left_out = 0;  // slices since that rank's run began, for which there was no room
  std::vector<Slice> slices;
  std::vector<Meeting> meetings;  // with their times as those of the slices
};

/// For the mail. rank_slices_from() throws InternalError on what bytes_of() does not write.
std::string bytes_of(const RankSlices& piece);
RankSlices rank_slices_from(std::string_view bytes);

/// Gathers the slices of another rank than 0, from one end of an iteration to the next. Memory is bounded: of an executor that
/// has more than some 16,000 slices in an iteration the last ones are left out, and likewise of meetings. Thread-safe as
/// WorkObserver demands; take() is called by one thread at a time.
class RankTrace final : public WorkObserver {
 public:
  /// `begin_ns`: when this rank's run began, on its own steady clock.
  RankTrace(int rank, size_t executors, int64_t begin_ns);

  void ended(const Slice& slice) override { rows_.ended(slice); }
  void met(const Meeting& meeting) override;

  /// The bytes of all that has ended since the last call. Empty before the clock of rank 0 is known: then it is kept.
  std::string take(const std::optional<ClockOffset>& offset);

 private:
  const int rank_;
  const int64_t begin_ns_;
  SliceRows rows_;
  std::mutex mutex_;  // guards meetings_
  std::vector<Meeting> meetings_;
};

}  // namespace sluice::engine
