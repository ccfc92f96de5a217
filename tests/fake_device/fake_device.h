#pragma once

#include <cstdint>

/// Devices "fake:0" and "fake:1": LibTorch's PrivateUse1 with the CPU's kernels after it, which behave as GPUs do where a
/// program can go wrong. A shared library that tests link, and a plugin of the program.
///
///   - Memory of the device cannot be touched by the host: an access is SIGSEGV. What was never written is NaN, or -1.
///   - Work is queued, in the order of its stream, and a thread of the stream does it later. When, a schedule decides: at the
///     latest when somebody waits for it. What does not wait reads what was there before.
///   - Freed memory is used again by the next allocation on its stream, and is NaN until then.
///   - A tensor of the host in an operator, but for single numbers, or one of the other device is an error.
///   - Only memory that is pinned is copied while the host goes on.
///
/// Owned by LibTorch's registries, so it lasts as long as the process. install() and the settings: one thread, while nothing is
/// queued. Errors of queued work are thrown by who waits for it next.
namespace sluice::fake {

constexpr int kDevices = 2;

/// Registers the devices with LibTorch, before the first backward of the process. Calling it again does nothing. The environment
/// may name a file in SLUICE_FAKE_OPERATORS: operators that the devices are asked for are appended to it (called_operators.h).
void install();

/// Decides how long work stays queued. The same seed does not give the same run: threads race.
void set_schedule(uint64_t seed);

/// What both devices have together, in bytes; more than that is LibTorch's OutOfMemoryError.
void set_capacity(int64_t bytes);

struct Counts {
  int64_t operators = 0;        // that were queued
  int64_t host_waits = 0;       // for work of a device
  int64_t pageable_copies = 0;  // to a device, which the host waits for
  int64_t copies_to_host = 0, bytes_to_host = 0;
  int64_t live_bytes = 0, peak_bytes = 0;
  int64_t peak_scratch = 0;  // the most bytes that one operator took beside its arguments and results
};

/// Since the last call; live_bytes: now. Waits until nothing is queued.
Counts take_counts();

}  // namespace sluice::fake
