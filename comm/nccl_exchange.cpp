#include "comm/nccl_exchange.h"

#include <c10/core/DeviceGuard.h>

#include <string>
#include <utility>

#include "base/error.h"

namespace sluice::comm {
NcclExchange::NcclExchange(std::shared_ptr<const NcclLibrary> library, const NcclLibrary::UniqueId& id,
                           const engine::World& world, c10::Device device)
    : library_(std::move(library)), device_(device) {
  const c10::DeviceGuard on(device_);
  check(library_->join(&communicator_, world.size, id, world.rank));
}

NcclExchange::~NcclExchange() {
  if (communicator_ == nullptr) return;
  const c10::DeviceGuard on(device_);
  library_->destroy(communicator_);
}

// One group, so that nobody waits for a piece that another rank would give only after one that it waits for itself. Where ranks
// are not connected yet its end waits for them, and may be abandoned meanwhile.
void NcclExchange::exchange(std::span<const Piece> to, std::span<const Piece> from, void* stream) {
  const c10::DeviceGuard on(device_);
  {
    const std::lock_guard lock(mutex_);
    if (communicator_ == nullptr) throw UserError("the ranks that train on GPUs are no longer connected");
    ask(to, from, stream);
  }
  check(library_->end_group());
}

void NcclExchange::ask(std::span<const Piece> to, std::span<const Piece> from, void* stream) {
  check(library_->begin_group());
  for (const Piece& piece : to) {
    const auto count = static_cast<size_t>(piece.count);
    if (count > 0) check(library_->send(piece.floats, count, NcclLibrary::kFloat32, piece.rank, communicator_, stream));
  }
  for (const Piece& piece : from) {
    const auto count = static_cast<size_t>(piece.count);
    if (count > 0) check(library_->receive(piece.floats, count, NcclLibrary::kFloat32, piece.rank, communicator_, stream));
  }
}

void NcclExchange::abandon() {
  const std::lock_guard lock(mutex_);
  if (NcclLibrary::Communicator* const communicator = std::exchange(communicator_, nullptr)) library_->abort(communicator);
}

void NcclExchange::check(int result) const {
  if (result == NcclLibrary::kDone) return;
  throw UserError("NCCL, which connects the GPUs of the ranks, failed: " + std::string(library_->text_of(result)),
                  "NCCL_DEBUG=INFO in the environment has NCCL say more");
}

}  // namespace sluice::comm
