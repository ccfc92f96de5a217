#pragma once

#include <string>

namespace sluice::cli {

/// For a command that starts the processes of a run itself. Throws UserError where this process is one of several ranks, each of
/// which would start all of them: who has started it, and `why` not.
void require_to_be_started_once(const std::string& why, const std::string& help);

}  // namespace sluice::cli
