#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"

namespace sluice::engine {

/// Where in a run something happened.
struct WorkPlace {
  std::string node;
  int64_t iteration = 0;
  int64_t micro_batch = -1;  // -1: not one micro-batch
  int64_t first_group = -1;  // -1: unknown
  int64_t last_group = -1;
};

/// Keeps the first failure; later ones are dropped. Thread-safe; takes no lock but its own, so that a failure can be captured
/// under any.
class FirstFailure {
 public:
  /// Called in a catch block: the exception being handled, as it is.
  void capture() { keep(std::current_exception()); }

  /// One that was caught elsewhere, or is made for it; not null.
  void capture(std::exception_ptr error) { keep(std::move(error)); }

  /// That of another one, which has one.
  void capture(const FirstFailure& other) { keep(other.error()); }

  bool failed() const { return failed_.load(); }

  /// Null: there is none.
  std::exception_ptr error() const;

  /// Throws nothing if there is none.
  void rethrow() const;

 protected:
  void keep(std::exception_ptr error);

 private:
  std::atomic<bool> failed_{false};
  mutable std::mutex mutex_;
  std::exception_ptr error_;
};

/// The first failure of a run, which everybody looks for before the next piece of work: a UserError that names node, iteration
/// and micro-batch, or an InternalError that does.
class FailureSlot : public FirstFailure {
 public:
  FailureSlot();

  using FirstFailure::capture;

  /// Called in a catch block: takes the exception being handled, with the place it happened at.
  void capture(const WorkPlace& place);

  /// Likewise, for what did not happen in a node: `what` failed, such as "executor 'cpu'".
  void capture(const std::string& what);

 private:
  void release_reserve();

  std::mutex mutex_;
  std::vector<std::unique_ptr<std::byte[]>> reserve_;  // for whoever tells of a run that is out of memory
};

}  // namespace sluice::engine
