#pragma once

namespace sluice {

/// A TCP port of 127.0.0.1 on which nobody listens now. Throws UserError when the system has none.
int free_port();

}  // namespace sluice
