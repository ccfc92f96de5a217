#pragma once

#include <c10/core/Device.h>

#include <memory>
#include <string>

#include "comm/nccl_library.h"
#include "comm/sockets.h"
#include "comm/store_connection.h"
#include "engine/contract/world/device_exchange.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// Connects the devices of ranks by NCCL, if each of them has it; null: not all do, which all of them learn.
///
/// prefix   of keys of the store that nobody uses, the same on all ranks
/// library  null: this rank has none, or its model is on no GPU
///
/// Waits for: all ranks of `world` to ask for the same. Ends when: they do, or at `until`, by UserError.
std::unique_ptr<engine::DeviceExchange> nccl_over(StoreConnection& store, const std::string& prefix, const engine::World& world,
                                                  c10::Device device, std::shared_ptr<const NcclLibrary> library,
                                                  Clock::time_point until);

}  // namespace sluice::comm
