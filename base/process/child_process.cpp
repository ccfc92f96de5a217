#include "base/process/child_process.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <system_error>
#include <utility>

namespace sluice {
namespace {

// Above 2, so that no end of it is in the way of the child's own stdin, stdout and stderr.
class Pipe {
 public:
  Pipe() {
    std::array<int, 2> ends{-1, -1};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
    for (size_t i = 0; i < 2; ++i) {
      ends_[i] = ends[i] > 2 ? ends[i] : ::fcntl(ends[i], F_DUPFD_CLOEXEC, 3);
      if (ends_[i] != ends[i]) ::close(ends[i]);
    }
  }
  ~Pipe() {
    for (size_t i = 0; i < 2; ++i) close(i);
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;

  static constexpr size_t kRead = 0, kWrite = 1;

  bool open() const { return ends_[0] >= 0 && ends_[1] >= 0; }
  int end(size_t i) const { return ends_[i]; }
  void close(size_t i) {
    if (ends_[i] >= 0) ::close(std::exchange(ends_[i], -1));
  }
  int taken(size_t i) {
    ::fcntl(ends_[i], F_SETFL, O_NONBLOCK);
    return std::exchange(ends_[i], -1);
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

// Of the system's list of a folder (getdents64).
struct Entry {
  uint64_t inode;
  int64_t offset;
  uint16_t length;
  uint8_t type;
  char name[1];
};

// All that the child needs, made before it is born.
struct Birth {
  const char* program;
  char* const* arguments;
  char* const* environment;
  const char* folder;  // null: stays where it is
  int input, output, errors, report;
  bool shares_terminal;
  const cpu_set_t* cores;  // null: those of this process
  sigset_t blocked;
  const int* inherited;
  size_t inherited_count;
  bool changes_user;
  uid_t user;
  pid_t parent;
};

// Every descriptor from 3 on is closed by exec. The second way is for systems without the call, or that refuse it.
bool inherit_nothing() {
  constexpr unsigned kCloseOnExec = 4;  // CLOSE_RANGE_CLOEXEC
  if (::syscall(SYS_close_range, 3U, ~0U, kCloseOnExec) == 0) return true;
  const int folder = ::open("/proc/self/fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (folder < 0) return false;
  alignas(Entry) char entries[4096];
  long bytes = 0;
  while ((bytes = ::syscall(SYS_getdents64, folder, entries, sizeof entries)) > 0) {
    for (long at = 0; at < bytes;) {
      const auto* entry = reinterpret_cast<const Entry*>(entries + at);
      int descriptor = 0;
      for (const char* digit = entry->name; *digit >= '0' && *digit <= '9'; ++digit)
        descriptor = 10 * descriptor + (*digit - '0');
      if (descriptor > 2) ::fcntl(descriptor, F_SETFD, FD_CLOEXEC);
      at += entry->length;
    }
  }
  return bytes == 0;
}

// The child shares our memory until it execs, and another thread may have held any lock: nothing but system calls, and those that
// the C library spreads over all threads (setresuid) past the library.
bool prepare(const Birth& birth) {
  ::setpgid(0, 0);
  struct sigaction to_default {};
  to_default.sa_handler = SIG_DFL;
  for (int signal = 1; signal < 65; ++signal) ::sigaction(signal, &to_default, nullptr);
  if (birth.shares_terminal) {  // else one that is set to it (stty tostop) stops what writes from the background
    struct sigaction to_ignore {};
    to_ignore.sa_handler = SIG_IGN;
    ::sigaction(SIGTTOU, &to_ignore, nullptr);
  }

  if (::dup2(birth.input, 0) < 0 || ::dup2(birth.output, 1) < 0 || ::dup2(birth.errors, 2) < 0) return false;
  if (!inherit_nothing()) return false;
  for (size_t i = 0; i < birth.inherited_count; ++i) {
    if (::fcntl(birth.inherited[i], F_SETFD, 0) != 0) return false;
  }
  if (birth.folder != nullptr && ::chdir(birth.folder) != 0) return false;
  if (birth.cores != nullptr && ::sched_setaffinity(0, sizeof *birth.cores, birth.cores) != 0) return false;
  if (birth.changes_user) {
    if (::syscall(SYS_setgroups, 0, nullptr) != 0) return false;
    if (::syscall(SYS_setresgid, birth.user, birth.user, birth.user) != 0) return false;
    if (::syscall(SYS_setresuid, birth.user, birth.user, birth.user) != 0) return false;
  }
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) return false;  // after the user, whose change forgets it
  return ::getppid() == birth.parent;                         // else the parent died before
}

[[noreturn]] void be_born(const Birth& birth) {
  if (prepare(birth)) {
    ::sigprocmask(SIG_SETMASK, &birth.blocked, nullptr);
    ::execve(birth.program, birth.arguments, birth.environment);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t ignored = ::write(birth.report, &error, sizeof error);
  ::_exit(127);
}

// vfork: the page tables of a trainer with a hundred gigabytes would take a second to copy. On a thread that takes no signals,
// since their handlers would run in our memory.
__attribute__((noinline)) pid_t give_birth(const Birth& birth) {
  const pid_t pid = ::vfork();
  if (pid == 0) be_born(birth);
  return pid;
}

std::vector<char*> pointers(const std::vector<std::string>& texts) {
  std::vector<char*> all;
  for (const std::string& text : texts) all.push_back(const_cast<char*>(text.c_str()));
  all.push_back(nullptr);
  return all;
}

cpu_set_t set_of(const std::vector<int>& cores) {
  cpu_set_t set;
  CPU_ZERO(&set);
  for (const int core : cores) CPU_SET(core, &set);
  return set;
}

sigset_t signals_of(const std::vector<int>& numbers) {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int number : numbers) sigaddset(&signals, number);
  return signals;
}

}  // namespace

ParentThread::ParentThread(const std::function<void()>& start) {
  std::promise<void> started;
  thread_ = std::thread([&, over = over_.get_future()] {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, nullptr);
    start();
    started.set_value();
    over.wait();
  });
  started.get_future().wait();
}

ParentThread::~ParentThread() {
  over_.set_value();
  thread_.join();
}

Launched launch(const std::filesystem::path& program, const SubprocessOptions& options) {
  Pipe input, output, errors, report;
  if (!input.open() || !output.open() || !errors.open() || !report.open()) return {.error = errno};
  const std::vector<char*> arguments = pointers(options.arguments);
  const std::vector<char*> environment = options.environment ? pointers(*options.environment) : std::vector<char*>{};
  const cpu_set_t cores = set_of(options.cores);
  const bool shared = options.output == ChildOutput::kShared, one_pipe = options.output == ChildOutput::kOnePipe;
  const Pipe& errors_into = one_pipe ? output : errors;
  const Birth birth{
      .program = program.c_str(),
      .arguments = arguments.data(),
      .environment = options.environment ? environment.data() : ::environ,
      .folder = options.folder.empty() ? nullptr : options.folder.c_str(),
      .input = input.end(Pipe::kRead),
      .output = shared ? STDOUT_FILENO : output.end(Pipe::kWrite),
      .errors = shared ? STDERR_FILENO : errors_into.end(Pipe::kWrite),
      .report = report.end(Pipe::kWrite),
      .shares_terminal = shared,
      .cores = options.cores.empty() ? nullptr : &cores,
      .blocked = signals_of(options.blocked),
      .inherited = options.inherited.data(),
      .inherited_count = options.inherited.size(),
      .changes_user = options.user.has_value(),
      .user = options.user.value_or(0),
      .parent = ::getpid(),
  };
  // So that it may open /dev/stdin and its like, which asks whose pipe it is.
  if (options.user) {
    for (const int end : {input.end(Pipe::kRead), output.end(Pipe::kWrite), errors.end(Pipe::kWrite)}) {
      if (::fchown(end, *options.user, *options.user) != 0) return {.error = errno};
    }
  }
  pid_t pid = -1;
  int birth_error = 0;
  std::unique_ptr<ParentThread> parent;
  try {
    parent = std::make_unique<ParentThread>([&] {
      pid = give_birth(birth);
      birth_error = errno;
    });
  } catch (const std::system_error& no_thread) {
    return {.error = no_thread.code().value()};
  }
  if (pid < 0) return {.error = birth_error};

  report.close(Pipe::kWrite);
  int error = 0;
  ssize_t count = 0;
  while ((count = ::read(report.end(Pipe::kRead), &error, sizeof error)) < 0 && errno == EINTR) {
  }
  if (count == sizeof error) {
    while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
    }
    return {.error = error == 0 ? ECHILD : error};
  }
  return {.pid = pid,
          .input = input.taken(Pipe::kWrite),
          .output = shared ? -1 : output.taken(Pipe::kRead),
          .errors = shared || one_pipe ? -1 : errors.taken(Pipe::kRead),
          .parent = std::move(parent)};
}

}  // namespace sluice
