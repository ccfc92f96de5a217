#pragma once

namespace sluice {

/// A TCP port of 127.0.0.1 on which nobody listens now; where there is one, below those that the system gives to whoever
/// connects, so that no connection takes it before somebody listens there. Throws UserError when the system has none.
int free_port();

/// The first of those that the system gives.
int first_given_port();

}  // namespace sluice
