#pragma once

#include "base/error.h"

namespace sluice::comm {

/// This rank gave no sign for too long, and the others go on without it.
class LeftBehind : public UserError {
 public:
  using UserError::UserError;
};

}  // namespace sluice::comm
