#pragma once

#include <exception>
#include <string>

namespace sluice::comm {

/// What LibTorch or Gloo says of a failure, in one sentence: without the stack trace that LibTorch puts into what(), and without
/// the place in its own code that Gloo begins with. Of an error of ours its message. For any thread.
std::string torch_reason(const std::exception& error);

}  // namespace sluice::comm
