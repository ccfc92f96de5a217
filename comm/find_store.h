#pragma once

#include <string>

#include "comm/sockets.h"

namespace sluice::comm {

/// Looks for the store that rank 0 serves at host:port, and returns the address in digits at which it answers.
///
/// Waits for: rank 0 to listen and to answer. Ends when: it does, or it is `until`: UserError then, which tells nobody there from
/// somebody else there. `seconds`: for how long this rank has waited then.
std::string find_store(const std::string& host, int port, Clock::time_point until, double seconds);

}  // namespace sluice::comm
