#pragma once

#include <exception>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

/// An allocation failed. The message names the place, the notes say where the memory went, the help says what to lower.
class OutOfMemory final : public UserError {
 public:
  using UserError::UserError;
};

/// The exception says that memory could not be had: std::bad_alloc, or what LibTorch and the system's calls throw instead.
bool is_out_of_memory(const std::exception& error);

}  // namespace sluice::engine
