#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <mutex>
#include <span>

#include "comm/nccl_library.h"
#include "engine/contract/world/device_exchange.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// Moves floats between the GPUs of ranks by NCCL.
///
/// Joins in the constructor. Waits for: all ranks of `world`. Ends when: they have joined, or the process does. Failure:
/// UserError with what NCCL says.
class NcclExchange final : public engine::DeviceExchange {
 public:
  /// `id`: the same on all ranks.
  NcclExchange(std::shared_ptr<const NcclLibrary> library, const NcclLibrary::UniqueId& id, const engine::World& world,
               c10::Device device);
  ~NcclExchange() override;

  void exchange(std::span<const Piece> to, std::span<const Piece> from, void* stream) override;
  void abandon() override;

 private:
  void ask(std::span<const Piece> to, std::span<const Piece> from, void* stream);
  void check(int result) const;

  const std::shared_ptr<const NcclLibrary> library_;
  const c10::Device device_;
  std::mutex mutex_;                                   // of what follows
  NcclLibrary::Communicator* communicator_ = nullptr;  // null: abandoned
};

}  // namespace sluice::comm
