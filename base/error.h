#pragma once

#include <stdexcept>
#include <string>

#include "base/problem.h"

namespace sluice {

/// Something the user can mend. Carries the problems; what() is their rendered text.
/// The command line maps it to exit code 78 before a run has started and to 1 while running.
class UserError : public std::runtime_error {
 public:
  explicit UserError(Problems problems);
  explicit UserError(Problem problem) : UserError(Problems{std::move(problem)}) {}

  /// Without a place: the message must name the file, the node or the key itself.
  explicit UserError(std::string message, std::string help = {});

  const Problems& problems() const { return problems_; }

  /// Of the first problem: all that there is where it was thrown with a message.
  const std::string& message() const { return problems_.front().message; }
  const std::string& help() const { return problems_.front().help; }

 private:
  Problems problems_;
};

/// One sentence about what went wrong: the first problem's message, or what().
std::string message_of(const std::exception& error);

/// A bug of ours. The command line says so and asks for a report.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void check_failed(const char* condition, const char* file, int line, const std::string& message);

}  // namespace sluice

/// Throws InternalError when an invariant of ours does not hold. Never for what a user can cause.
#define SLUICE_CHECK(condition, message) \
  (static_cast<bool>(condition) ? void() : ::sluice::check_failed(#condition, __FILE__, __LINE__, message))
