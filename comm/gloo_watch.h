#pragma once

#include <chrono>
#include <exception>
#include <functional>
#include <string>

namespace sluice::comm {

/// Whether it is of a type of Gloo's, which are unknown here (see process_group.cpp). Where a connection breaks Gloo throws a
/// std::runtime_error; what is wrong with a message of another rank, such as its length, it takes for a bug of its user.
bool is_of_gloo(const std::exception& error);

/// Gloo reads what other ranks send on threads of its own, and throws there where the head of a message is not what it can be:
/// a network has flipped a bit. Nobody can catch that, so the process would be aborted. While one of these lives the run hears
/// of it.
///
/// `failed` is called on such a thread, of the oldest of these, once in a process. It must not wait, and returns what it makes
/// of the exception. That thread never goes on, and keeps locks of Gloo that the run may wait for: so where the process has not
/// ended `to_end` later, that text is printed and the process exits with code 1.
class GlooWatch {
 public:
  using Failed = std::function<std::string(const std::exception_ptr&)>;

  explicit GlooWatch(Failed failed, std::chrono::milliseconds to_end = std::chrono::seconds(5));
  ~GlooWatch();
  GlooWatch(const GlooWatch&) = delete;
  GlooWatch& operator=(const GlooWatch&) = delete;
};

}  // namespace sluice::comm
