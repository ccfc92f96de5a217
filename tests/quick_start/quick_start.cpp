// Starts of the program for its tests that load its libraries once: most of a short command's time is LibTorch's registration of its
// operators, and the tests start it some thousands of times.
//
// Preloaded (LD_PRELOAD) into the program itself, which is not changed for it: where its main() would begin, it waits on the socket
// SLUICE_TEST_STARTS instead. For each request there it makes a copy of itself, in which main() runs with the words, the environment, the
// folder and the standard descriptors of the request. tests/quick_start/quick_start.py is the other end.
//
// A request is one message with four descriptors: standard input, output and error, and a pipe for answers. Its texts end with a zero
// each: the folder, the count of words, the words (the first is the program's name), the environment. The answers are two numbers of
// 32 bits: the process, and how it ended, as waitpid() has it. The socket's end ends the process.
//
// What such a copy starts of the program, as `launch` starts ranks, is a copy of itself in turn: its main() begins again in it. The
// program keeps nothing of its own outside of main() that this would find, and each rank sets again what LibTorch keeps.

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <vector>

namespace {

using Main = int (*)(int, char**, char**);

constexpr int kRefused = 125;  // as env(1) ends where it could not start a program
constexpr std::size_t kMostBytes = 1 << 20;

Main main_of_program = nullptr;
bool is_copy = false;

struct Request {
  std::vector<char> texts;
  std::array<int, 4> descriptors{};
};

// False at the end of the socket.
bool receive(int socket, Request& request) {
  request.texts.resize(kMostBytes);
  iovec part{request.texts.data(), request.texts.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof request.descriptors)> control{};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t size = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (size <= 0) return false;
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if ((message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) != 0 || header == nullptr) std::_Exit(kRefused);
  std::memcpy(request.descriptors.data(), CMSG_DATA(header), sizeof request.descriptors);
  request.texts.resize(static_cast<std::size_t>(size));
  return true;
}

std::vector<char*> texts_of(std::vector<char>& bytes) {
  std::vector<char*> texts;
  for (char* text = bytes.data(); text < bytes.data() + bytes.size(); text += std::strlen(text) + 1) texts.push_back(text);
  return texts;
}

[[noreturn]] void run_main(char* const* words, char* const* variables) {
  is_copy = true;
  ::environ = const_cast<char**>(variables);
  int count = 0;
  while (words[count] != nullptr) ++count;
  std::exit(main_of_program(count, const_cast<char**>(words), ::environ));
}

// In the copy: never returns.
[[noreturn]] void run(Request& request) {
  std::vector<char*> texts = texts_of(request.texts);
  const int count = std::atoi(texts[1]);
  std::vector<char*> words(texts.begin() + 2, texts.begin() + 2 + count);
  std::vector<char*> variables(texts.begin() + 2 + count, texts.end());
  words.push_back(nullptr);
  variables.push_back(nullptr);
  if (::chdir(texts[0]) != 0) std::_Exit(kRefused);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::dup2(request.descriptors[static_cast<std::size_t>(standard)], standard);
  ::closefrom(STDERR_FILENO + 1);
  run_main(words.data(), variables.data());
}

bool is_this_program(const char* path) {
  struct stat named {};
  struct stat ours {};
  return ::stat(path, &named) == 0 && ::stat("/proc/self/exe", &ours) == 0 && named.st_dev == ours.st_dev &&
         named.st_ino == ours.st_ino;
}

void close_what_exec_closes() {
  const rlim_t most = 65536;  // as the program raises its limit to
  for (rlim_t descriptor = STDERR_FILENO + 1; descriptor < most; ++descriptor) {
    const int number = static_cast<int>(descriptor);
    const int flags = ::fcntl(number, F_GETFD);
    if (flags != -1 && (flags & FD_CLOEXEC) != 0) ::close(number);
  }
}

void answer(int pipe, std::int32_t number) {
  if (::write(pipe, &number, sizeof number) != sizeof number) std::_Exit(kRefused);
}

// In a process of its own, the parent of the copy, since the loop waits for no one.
[[noreturn]] void start(Request& request) {
  ::signal(SIGCHLD, SIG_DFL);
  const pid_t process = ::fork();
  if (process == 0) run(request);
  const int answers = request.descriptors[3];
  ::signal(SIGPIPE, SIG_IGN);
  answer(answers, process);
  for (const int standard : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO})
    ::close(request.descriptors[static_cast<std::size_t>(standard)]);
  int status = kRefused << 8;
  if (process > 0) ::waitpid(process, &status, 0);
  answer(answers, status);
  std::_Exit(0);
}

int serve(int, char**, char**) {
  const int socket = std::atoi(::getenv("SLUICE_TEST_STARTS"));
  ::signal(SIGCHLD, SIG_IGN);  // those that have ended leave nothing
  Request request;
  while (receive(socket, request)) {
    if (::fork() == 0) start(request);
    for (const int descriptor : request.descriptors) ::close(descriptor);
  }
  std::_Exit(0);
}

}  // namespace

// Its child has memory of its own here, as a copy needs it.
extern "C" pid_t vfork() noexcept { return ::fork(); }

extern "C" int execve(const char* program, char* const* words, char* const* variables) noexcept {
  if (!is_copy || !is_this_program(program)) {
    return reinterpret_cast<decltype(&execve)>(::dlsym(RTLD_NEXT, "execve"))(program, words, variables);
  }
  close_what_exec_closes();
  run_main(words, variables);
}

// The C library's, which is called with main() when all libraries are loaded.
extern "C" int __libc_start_main(Main main, int count, char** words, void (*init)(), void (*fini)(), void (*loader_fini)(),
                                 void* stack) {
  const auto next = reinterpret_cast<decltype(&__libc_start_main)>(::dlsym(RTLD_NEXT, "__libc_start_main"));
  main_of_program = main;
  return next(serve, count, words, init, fini, loader_fini, stack);
}
