#include "comm/nccl_over.h"

#include <cstring>
#include <optional>
#include <utility>

#include "base/error.h"
#include "comm/nccl_exchange.h"

namespace sluice::comm {
namespace {

constexpr const char *kHas = "has", *kLacks = "lacks";

std::string asked(StoreConnection& store, const std::string& key, Clock::time_point until, int rank) {
  if (std::optional<std::string> value = store.wait_for(key, until)) return *std::move(value);
  throw UserError("rank " + std::to_string(rank) + " did not say in time whether its GPU can be reached");
}

// What one of the ranks makes.
NcclLibrary::UniqueId shared_id(StoreConnection& store, const std::string& prefix, const NcclLibrary& library, int rank,
                                Clock::time_point until) {
  NcclLibrary::UniqueId id{};
  const std::string key = prefix + "/id";
  if (rank == 0) {
    if (library.make_id(&id) != NcclLibrary::kDone) throw UserError("NCCL could make no group of ranks");
    store.set(key, {id.bytes.data(), id.bytes.size()});
    return id;
  }
  const std::string value = asked(store, key, until, 0);
  SLUICE_CHECK(value.size() == id.bytes.size(), "the name of a group of ranks has another length");
  std::memcpy(id.bytes.data(), value.data(), value.size());
  return id;
}

}  // namespace

std::unique_ptr<engine::DeviceExchange> nccl_over(StoreConnection& store, const std::string& prefix, const engine::World& world,
                                                  c10::Device device, std::shared_ptr<const NcclLibrary> library,
                                                  Clock::time_point until) {
  const auto key_of = [&](int rank) { return prefix + "/" + std::to_string(rank); };
  store.set(key_of(world.rank), library ? kHas : kLacks);
  bool all_have = true;
  for (int rank = 0; rank < world.size; ++rank) all_have = asked(store, key_of(rank), until, rank) == kHas && all_have;
  if (!all_have) return nullptr;
  const NcclLibrary::UniqueId id = shared_id(store, prefix, *library, world.rank, until);
  return std::make_unique<NcclExchange>(std::move(library), id, world, device);
}

}  // namespace sluice::comm
