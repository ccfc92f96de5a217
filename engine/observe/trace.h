#pragma once

#include <condition_variable>
#include <filesystem>
#include <functional>
#include <map>
#include <mutex>
#include <set>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/files/file.h"
#include "engine/observe/meetings.h"
#include "engine/observe/rank_trace.h"
#include "engine/observe/slice_rows.h"
#include "engine/observe/work_observer.h"
#include "engine/plan/plan.h"

namespace sluice::engine {

/// Writes `trace.json` in Chrome's trace format while the run goes on: one row an executor, one slice a piece of work. Of a run
/// on several ranks, of which rank 0 writes the file, each rank is a process with rows of its own, and arrows lead from the rank
/// that came last to a point to those that had waited for it. Executors only put slices into a buffer; a thread of its own writes
/// them four times a second, or once a buffer is full. Memory does not grow with the run.
class TraceWriter final : public WorkObserver {
 public:
  /// Throws UserError where it cannot begin. `on_error` is called in a catch block, once, when the file cannot be written later,
  /// such as on a full disk; nothing is written after that. `begin_ns`: where on the trace's time the run begins. Above 0 the
  /// file goes on, which cut_trace() has left.
  TraceWriter(const std::filesystem::path& path, const Plan& plan, int64_t begin_ns, std::function<void()> on_error,
              FileSystem& files);
  ~TraceWriter() override;

  void ended(const Slice& slice) override { rows_.ended(slice); }
  void met(const Meeting& meeting) override;

  /// Brings all slices that have ended to the disk. Without effect after close(). From any thread.
  void flush();

  /// Of a run on several ranks: this one's process is called so.
  void name_own_process(const std::string& name);

  /// Adds what another rank has done, as a process of its own that is called `name`. `shift_ns` is added to its times: then they
  /// are those of this rank's run. Without effect after close(). From any thread. Throws InternalError on slices of another plan.
  void add(const RankSlices& piece, int64_t shift_ns, const std::string& name);

  /// Completes the file; once, when no work is under way.
  void close();

 private:
  void loop();
  void unless_broken(const std::function<void()>& change);
  void write_finished(bool also_last);
  void write(int pid, int64_t shift_ns, std::span<const Slice> slices);
  void append(int pid, int64_t shift_ns, const Slice& slice);
  void note(int pid, int64_t shift_ns, const Slice& slice, const std::string& words);
  void check(const RankSlices& piece) const;
  void meet_own();
  void meet(int rank, int64_t shift_ns, Meeting meeting);
  void append(const Meetings::Arrow& arrow, const Meeting& meeting);
  void write_piece(const RankSlices& piece, int64_t shift_ns, const std::string& name);
  void forget_finished();
  void name_process(int rank, const std::string& name, const std::string& label);
  void name_threads(int pid);

  const std::vector<std::string> heads_;      // by node
  const std::vector<std::string> executors_;  // names
  const int64_t begin_ns_;
  const std::function<void()> on_error_;
  OutputFile file_;
  SliceRows rows_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool full_ = false;             // some chunk is
  std::vector<Meeting> own_met_;  // that are in no arrow yet
  bool closing_ = false;
  std::mutex writing_;  // guards what follows, and the file
  bool broken_ = false;
  bool closed_ = false;
  std::set<int> named_;              // ranks that have a name in the file
  std::map<int, int64_t> left_out_;  // by rank, so far
  Meetings meetings_;
  std::string text_;
  std::thread thread_;
};

}  // namespace sluice::engine
