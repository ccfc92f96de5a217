#pragma once

#include "base/error.h"

namespace sluice::comm {

/// This rank, which may be lost, gave no sign for too long, and the others go on without it.
class LeftBehind : public UserError {
 public:
  using UserError::UserError;
};

/// This process was to take the place of a rank that was lost, and the run has ended before it could.
class CameTooLate : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace sluice::comm
