#pragma once

namespace sluice::fake {

/// Devices, streams and events as LibTorch asks for them: registers a guard and hooks of PrivateUse1, once a process.
void install_guard();

}  // namespace sluice::fake
