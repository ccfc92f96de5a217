#pragma once

#include <c10/core/Device.h>

#include <string>
#include <vector>

namespace sluice::models {

/// Streams of devices that work apart from the host (portable/abilities.h). A stream does what it is asked for in order; a device
/// does the work of several side by side. Each thread has a current one on each device, where LibTorch's operators and our
/// kernels go: the device's default one, which threads have in common, until use_own_streams().
///
/// Nothing orders the work of two streams. Whoever has changed what lies on a device, and lets other threads read it, calls
/// finish_work_on() first: a version when it is published, weights after a step. Readers need nothing, since what they give
/// others lies on the host, and comes there after all that they have read. From any thread; a device without streams, the CPU
/// for one, is left alone.

/// Which stream a device turns to where both have work.
enum class StreamOrder { kUsual, kFirst };

/// From now on the calling thread has streams of its own on these devices (device_named()). What anybody has asked them for
/// before is done by then.
void use_own_streams(const std::vector<std::string>& devices, StreamOrder order);

/// Waits until all that the calling thread has asked the device for is done. Throws what failed of it.
void finish_work_on(at::Device device);

/// The calling thread's, as our kernels take it: cudaStream_t on a GPU, null for the default one.
void* current_stream_on(at::Device device);

}  // namespace sluice::models
