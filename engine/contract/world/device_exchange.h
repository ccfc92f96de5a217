#pragma once

#include <cstdint>
#include <span>

namespace sluice::engine {

/// Moves floats between the devices of the ranks that train a model, without the host. Of one model and rank.
///
/// One thread at a time, the same calls in the same order on all ranks. Failure: what a library says is UserError. Another rank
/// may be lost while the device waits for it: abandon() ends that.
class DeviceExchange {
 public:
  /// Side by side in the memory of the device.
  struct Piece {
    int rank = 0;  // another one, that gets it or gives it
    float* floats = nullptr;
    int64_t count = 0;
  };

  virtual ~DeviceExchange() = default;

  /// What one rank sends another is, piece by piece, what that receives from it. It comes after all that `stream` of the device
  /// (cudaStream_t on a GPU, null: the default one) has been asked to do, and ahead of all that it will be: the host does not
  /// wait.
  virtual void exchange(std::span<const Piece> to, std::span<const Piece> from, void* stream) = 0;

  /// This rank's run has failed, or is over. From any thread.
  virtual void abandon() = 0;
};

}  // namespace sluice::engine
