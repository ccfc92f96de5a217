#pragma once

#include <cstdint>
#include <string>

#include "base/files/file.h"
#include "engine/contract/run_folder.h"
#include "engine/contract/world/metrics.h"

namespace sluice::engine {

/// Seconds since 1970, of the clock on the wall: what TensorBoard puts beside a step.
double wall_clock_seconds();

/// The metrics of a run for TensorBoard: `events.out.tfevents.SECONDS.HOST.PID` in the run folder, so that `tensorboard --logdir
/// runs` shows each run folder as a run.
///
/// Records are framed as TFRecord; each is one `Event` of TensorBoard's event.proto. A record is handed to the system as a whole
/// before a call returns, so what is shown is never older than the last call. Owns the file. Not thread-safe.
/// Throws UserError when the file cannot be written.
class EventFile {
 public:
  /// Makes the file in `folder`, which exists, with the record that names the version of the format.
  explicit EventFile(const RunFolder& folder, double wall_time_seconds = wall_clock_seconds());

  /// One scalar a metric, under its name. Values are stored as float32; one that is not finite stays what it is.
  void scalars(int64_t step, double wall_time_seconds, const MetricRow& row);

  /// In its folder.
  const std::string& name() const { return name_; }
  int64_t bytes() const { return whole_; }  // of whole records: a write that failed may have left a part of one

  /// To the disk; later calls are a bug. The destructor closes silently.
  void close() { file_.close(); }

 private:
  void write(const std::string& record);

  const std::string name_;
  OutputFile file_;
  int64_t whole_ = 0;
};

}  // namespace sluice::engine
