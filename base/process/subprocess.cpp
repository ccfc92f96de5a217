#include "base/process/subprocess.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "base/log.h"
#include "base/process/child_process.h"
#include "base/process/no_pipe_signal.h"
#include "base/text/strings.h"

namespace sluice {
namespace {

using std::chrono::milliseconds;

constexpr size_t kChunk = 64 << 10;
constexpr milliseconds kTick{20};           // how often a system without process descriptors is asked
constexpr milliseconds kDeathWait{10'000};  // a killed process that is stuck in the system is not waited for without end

void close_one(int& descriptor) {
  if (descriptor >= 0) ::close(descriptor);
  descriptor = -1;
}

milliseconds time_left(Subprocess::Clock::time_point until) {
  const auto left = until - Subprocess::Clock::now();
  return std::clamp(std::chrono::ceil<milliseconds>(left), milliseconds(0), milliseconds(60'000));
}

}  // namespace

std::optional<std::filesystem::path> find_program(const std::string& name) {
  if (name.empty()) return std::nullopt;
  const auto runs = [](const std::filesystem::path& path) {
    std::error_code none;
    return std::filesystem::is_regular_file(path, none) && ::access(path.c_str(), X_OK) == 0;
  };
  if (name.find('/') != std::string::npos) return runs(name) ? std::optional<std::filesystem::path>(name) : std::nullopt;
  const char* path = std::getenv("PATH");
  for (const std::string& folder : split(path == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path, ':')) {
    const std::filesystem::path candidate = std::filesystem::path(folder.empty() ? "." : folder) / name;
    if (runs(candidate)) return candidate;
  }
  return std::nullopt;
}

Subprocess::Subprocess(SubprocessOptions options) : options_(std::move(options)) {
  SLUICE_CHECK(!options_.arguments.empty(), "a process needs a program");
  const auto program = find_program(options_.arguments.front());
  if (!program) {
    throw UserError("there is no program " + sluice::quoted(options_.arguments.front()) + " that could be started",
                    "name one that is in PATH, or give its path");
  }
  Launched launched = launch(*program, options_);
  if (launched.error != 0) {
    throw UserError("cannot start " + sluice::quoted(program->string()) + ": " + std::strerror(launched.error));
  }
  parent_ = std::move(launched.parent);
  pid_ = launched.pid;
  input_ = launched.input;
  output_pipe_ = launched.output;
  errors_pipe_ = launched.errors;
  process_ = static_cast<int>(::syscall(SYS_pidfd_open, pid_, 0));
}

Subprocess::~Subprocess() {
  try {
    kill();
  } catch (const std::exception& error) {
    log_warning(error.what());
  }
  close_all();
}

void Subprocess::close_all() {
  for (int* descriptor : {&process_, &input_, &output_pipe_, &errors_pipe_}) close_one(*descriptor);
  parent_.reset();
}

void Subprocess::send(std::string_view bytes) {
  if (input_ < 0) return;
  SLUICE_CHECK(!input_ends_, "the input has ended");
  to_send_ += bytes;
}

void Subprocess::end_input() {
  input_ends_ = true;
  if (to_send_.empty()) close_one(input_);
}

void Subprocess::exchange(std::span<Subprocess* const> processes, Clock::time_point until) {
  std::vector<pollfd> watched;  // 4 a process; poll() passes over negative descriptors
  bool ask_often = false;
  for (const Subprocess* process : processes) {
    const bool alive = !process->ended_;
    watched.push_back({alive && !process->to_send_.empty() ? process->input_ : -1, POLLOUT, 0});
    watched.push_back({alive && !process->overflowed() ? process->output_pipe_ : -1, POLLIN, 0});
    watched.push_back({alive ? process->errors_pipe_ : -1, POLLIN, 0});
    watched.push_back({alive ? process->process_ : -1, POLLIN, 0});
    ask_often |= alive && process->process_ < 0;
  }
  const milliseconds wait = ask_often ? std::min(time_left(until), kTick) : time_left(until);
  if (::poll(watched.data(), watched.size(), static_cast<int>(wait.count())) < 0) {
    SLUICE_CHECK(errno == EINTR || errno == EAGAIN, std::string("poll failed: ") + std::strerror(errno));
    return;
  }
  for (size_t p = 0; p < processes.size(); ++p) {
    Subprocess& process = *processes[p];
    if (process.ended_) continue;
    if (watched[4 * p].revents != 0) process.move_input();
    if (watched[4 * p + 1].revents != 0) process.move_output();
    if (watched[4 * p + 2].revents != 0) process.move_errors();
    if (watched[4 * p + 3].revents != 0 || process.process_ < 0) process.reap();
  }
}

void Subprocess::move_input() {
  const NoPipeSignal no_signal;
  const ssize_t count = ::write(input_, to_send_.data() + sent_, to_send_.size() - sent_);
  if (count < 0 && (errno == EAGAIN || errno == EINTR)) return;
  sent_ += count < 0 ? 0 : static_cast<size_t>(count);
  if (count >= 0 && sent_ < to_send_.size()) return;
  to_send_.clear();
  sent_ = 0;
  if (count < 0 || input_ends_) close_one(input_);  // nobody reads, or all was written
}

void Subprocess::move_output() {
  std::array<char, kChunk> bytes;
  const ssize_t count = ::read(output_pipe_, bytes.data(), std::min(bytes.size(), options_.most_output + 1 - output_.size()));
  if (count > 0) output_.append(bytes.data(), static_cast<size_t>(count));
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close_one(output_pipe_);
}

void Subprocess::move_errors() {
  std::array<char, kChunk> bytes;
  const ssize_t count = ::read(errors_pipe_, bytes.data(), bytes.size());
  if (count > 0) errors_.append(bytes.data(), static_cast<size_t>(count));
  if (errors_.size() > options_.kept_errors) errors_.erase(0, errors_.size() - options_.kept_errors);
  if (count == 0 || (count < 0 && errno != EAGAIN && errno != EINTR)) close_one(errors_pipe_);
}

// The group is killed while the process is still a zombie, so that its number cannot belong to anyone else.
void Subprocess::reap() {
  siginfo_t end{};
  if (::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG | WNOWAIT) != 0 || end.si_pid != pid_) return;
  ::kill(-pid_, SIGKILL);

  // What is still in the pipes. Bounded: a process that left the group may go on to write.
  const size_t rounds = options_.most_output / kChunk + 16;
  for (size_t i = 0; i < rounds && output_pipe_ >= 0 && !overflowed(); ++i) {
    const size_t before = output_.size();
    move_output();
    if (output_.size() == before) break;
  }
  for (size_t i = 0; i < 16 && errors_pipe_ >= 0; ++i) {
    pollfd more{errors_pipe_, POLLIN, 0};
    if (::poll(&more, 1, 0) != 1) break;
    move_errors();
  }

  ::waitid(P_PID, static_cast<id_t>(pid_), &end, WEXITED | WNOHANG);
  if (end.si_code == CLD_EXITED) {
    exit_code_ = end.si_status;
  } else {
    signal_ = end.si_status;
  }
  ended_ = true;
  close_all();
}

std::optional<std::string> Subprocess::take_line() {
  const size_t end = output_.find('\n', searched_);
  searched_ = end == std::string::npos ? output_.size() : 0;
  if (end == std::string::npos) return std::nullopt;
  std::string line = output_.substr(0, end);
  output_.erase(0, end + 1);
  return line;
}

std::string Subprocess::take_output() {
  searched_ = 0;
  return std::exchange(output_, {});
}

std::string Subprocess::how_it_ended() const {
  SLUICE_CHECK(ended_, "the process has not ended");
  if (signal_ == 0) return "exited with code " + std::to_string(exit_code_);
  const char* name = ::sigabbrev_np(signal_);
  return "was killed by signal " + std::to_string(signal_) + (name == nullptr ? "" : " (" + std::string(name) + ")");
}

int Subprocess::shell_code() const {
  SLUICE_CHECK(ended_, "the process has not ended");
  return signal_ == 0 ? exit_code_ : 128 + signal_;
}

// Until it is reaped its number is its own.
void Subprocess::signal(int number) {
  if (!ended_) ::kill(pid_, number);
}

void Subprocess::signal_group(int number) {
  if (!ended_) ::kill(-pid_, number);
}

void Subprocess::kill(milliseconds grace) {
  if (ended_ || pid_ < 0) return;
  Subprocess* const self = this;
  const auto wait = [&](milliseconds time) {
    for (const auto until = Clock::now() + time; !ended_ && Clock::now() < until;) {
      if (overflowed()) output_.clear();  // so that it does not wait for its own output to be read
      exchange({&self, 1}, until);
    }
  };
  if (grace.count() > 0) {
    ::kill(-pid_, SIGTERM);
    wait(grace);
  }
  if (ended_) return;
  ::kill(-pid_, SIGKILL);
  wait(kDeathWait);
  if (!ended_) log_warning("process " + std::to_string(pid_) + " was killed, but has not ended");
  ended_ = true;
}

}  // namespace sluice
