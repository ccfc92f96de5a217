#pragma once

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <exception>
#include <string>

namespace sluice {

/// The text of the exception that `action` throws when somebody runs it who is not root; empty: it throws none. In a child
/// process: the test's own stays who it is.
template <class Action>
std::string message_as_ordinary_user(const Action& action) {
  int ends[2];
  if (::pipe(ends) != 0) return "no pipe";
  const pid_t child = ::fork();
  if (child == 0) {
    std::string message;
    try {
      const bool changed = ::geteuid() != 0 || (::setgid(65534) == 0 && ::setuid(65534) == 0);
      if (!changed) throw std::runtime_error("cannot become another user");
      action();
    } catch (const std::exception& error) {
      message = error.what();
    }
    ::_exit(::write(ends[1], message.data(), message.size()) == static_cast<ssize_t>(message.size()) ? 0 : 1);
  }
  ::close(ends[1]);
  std::string message;
  char buffer[512];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;) message.append(buffer, static_cast<size_t>(count));
  ::close(ends[0]);
  int status = 0;
  ::waitpid(child, &status, 0);
  return message;
}

}  // namespace sluice
