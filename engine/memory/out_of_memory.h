#pragma once

#include <exception>

#include "base/error.h"

namespace sluice::engine {

/// An allocation failed. The message names the place, the notes say where the memory went, the help says what to lower.
class OutOfMemory final : public UserError {
 public:
  using UserError::UserError;
};

struct MemoryReport;
struct Plan;

/// An allocation that failed, with where the memory went and what to lower.
OutOfMemory explained(Problem failed, const Plan& plan, const MemoryReport& report);

/// Likewise of an OutOfMemory; every other exception stays as it is.
std::exception_ptr explained(const std::exception_ptr& error, const Plan& plan, const MemoryReport& report);

/// The exception says that memory could not be had: std::bad_alloc, or what LibTorch and the system's calls throw instead.
bool is_out_of_memory(const std::exception& error);

}  // namespace sluice::engine
