#pragma once

#include <sys/types.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace sluice {

/// The file that a shell would run for `name`: itself where it has a slash, else the first of that name in PATH. Nothing: there
/// is none that may be executed.
std::optional<std::filesystem::path> find_program(const std::string& name);

class ParentThread;

/// Where a process writes.
enum class ChildOutput {
  kPipes,    // stdout and stderr are a pipe each
  kOnePipe,  // what it writes to either comes in order, as its stdout
  kShared,   // where this process writes; it may write to a terminal from the background
};

struct SubprocessOptions {
  std::vector<std::string> arguments;                   // argv; the program is what find_program() says of the first
  std::optional<std::vector<std::string>> environment;  // "NAME=value"; unset: as this process
  std::filesystem::path folder;                         // to work in; empty: as this process
  std::vector<int> inherited;                           // descriptors, from 3, that it has under their numbers beside 0, 1 and 2
  std::optional<uid_t> user;                            // to run as, with the group of that number and no other; only for root
  ChildOutput output = ChildOutput::kPipes;
  std::vector<int> cores;         // that it may use; empty: as this process
  std::vector<int> blocked;       // signals that it does not get until it unblocks them: it may take a while to handle them
  size_t most_output = 64 << 20;  // bytes of its stdout that may wait to be taken
  size_t kept_errors = 16 << 10;  // bytes of its stderr that are kept: the last
};

/// Another program, without a shell: its stdin, stdout and stderr are pipes, unless ChildOutput says otherwise.
///
/// It is in a process group of its own, so that Ctrl-C does not reach it, and what it starts is killed with it. It has none of
/// this process's descriptors. It is killed with this object, and when this process dies in any way.
///
/// Nothing moves by itself: exchange() writes what send() queued and reads what came. An object belongs to one thread at a time;
/// several threads may have several.
class Subprocess {
 public:
  using Clock = std::chrono::steady_clock;

  /// Throws UserError when the program cannot be started.
  explicit Subprocess(SubprocessOptions options);

  /// kill() at once.
  ~Subprocess();
  Subprocess(const Subprocess&) = delete;
  Subprocess& operator=(const Subprocess&) = delete;

  /// Queues bytes for its stdin. Those for a stdin that it has closed are dropped.
  void send(std::string_view bytes);

  /// Its stdin ends after what was sent.
  void end_input();

  /// Waits for: something to move to or from any of the processes. Ends when: something did, one of them ended, or it is `until`.
  static void exchange(std::span<Subprocess* const> processes, Clock::time_point until);

  /// The next whole line of its stdout, without its end, or nothing (yet).
  std::optional<std::string> take_line();

  /// All of its stdout that was not taken.
  std::string take_output();

  /// The end of its stderr.
  const std::string& errors() const { return errors_; }

  /// It has ended, and what it wrote was read.
  bool ended() const { return ended_; }

  /// Of a process that has ended: it did so by itself, with exit code 0.
  bool succeeded() const { return ended_ && exit_code_ == 0; }

  /// As a shell tells it: its exit code, or 128 and the signal that killed it. Of a process that has ended.
  int shell_code() const;

  /// A signal killed it. Of a process that has ended.
  bool was_killed() const { return signal_ != 0; }

  pid_t pid() const { return pid_; }

  /// A signal to the process alone, or to all of its group. Nothing where it has ended.
  void signal(int number);
  void signal_group(int number);

  /// "exited with code 3", "was killed by signal 11 (SEGV)". Of a process that has ended.
  std::string how_it_ended() const;

  /// More than most_output of what it wrote waits to be taken. Nothing more of it is read.
  bool overflowed() const { return output_.size() > options_.most_output; }

  /// SIGTERM to the process and all of its group, and SIGKILL to what is left after `grace`. Returns when it has ended.
  void kill(std::chrono::milliseconds grace = {});

 private:
  struct Ready;

  void start();
  void move_input();
  void move_output();
  void move_errors();
  void reap();
  void close_all();

  SubprocessOptions options_;
  std::unique_ptr<ParentThread> parent_;  // null: it has ended
  pid_t pid_ = -1;
  int process_ = -1;  // descriptor that becomes readable when it ends; -1: the system has none
  int input_ = -1;
  int output_pipe_ = -1;
  int errors_pipe_ = -1;
  std::string to_send_;
  size_t sent_ = 0;  // of to_send_
  bool input_ends_ = false;
  std::string output_;
  size_t searched_ = 0;  // of output_: has no end of a line
  std::string errors_;
  bool ended_ = false;
  int exit_code_ = -1;
  int signal_ = 0;
};

}  // namespace sluice
