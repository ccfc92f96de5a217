#pragma once

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/process/subprocess.h"

namespace sluice::cli {

/// The process that tells experiment trackers of a run, python/sluice/trackers/. It reads the files of the run folder as they
/// grow and keeps in RUN/trackers how far it has come, so that it goes on there with the run.
///
/// Never in the run's way: no thread of the run waits for it but in finish(), and whatever goes wrong with it is a warning. It
/// dies with this object and with this process.
class Trackers {
 public:
  struct Options {
    std::vector<std::string> names;
    std::filesystem::path run_folder;
    std::string project;
    bool afterwards = false;  // the run is over, and the wait has no end: who does not answer is noted again and again
    std::function<void(const std::string&)> warn;  // from a thread of this object
    std::function<void(const std::string&)> note;  // what is waited for; from that thread, or in finish()
  };

  /// Starts it, and a thread that listens to it.
  explicit Trackers(Options options);

  /// Kills it where it has not ended.
  ~Trackers();
  Trackers(const Trackers&) = delete;
  Trackers& operator=(const Trackers&) = delete;

  /// Nothing more is written. Waits for: the process to have told all. Ends when: it has, it has failed, after `most`, or as soon
  /// as `is_to_end` says so. A wait with an end is told when it takes long.
  void finish(std::optional<std::chrono::duration<double>> most, const std::function<bool()>& is_to_end = {});

 private:
  void start();
  void listen();
  void tell_until_the_end();
  void take_lines();
  void pass_on(const std::string& line) const;

  const Options options_;
  std::unique_ptr<Subprocess> process_;  // of thread_ while that runs; null: it could not be started
  std::atomic<bool> over_ = false;       // the run: what is left is told
  std::atomic<bool> dropped_ = false;    // nobody waits any longer
  std::atomic<bool> ended_ = false;      // it has told all, or failed
  std::thread thread_;
};

}  // namespace sluice::cli
