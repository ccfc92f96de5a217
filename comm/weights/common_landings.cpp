#include "comm/weights/common_landings.h"

#include <future>
#include <utility>

#include "base/error.h"

namespace sluice::comm {

CommonLandings::CommonLandings(DirectParcels& parcels, std::vector<int> sharers, size_t bytes, size_t chunks,
                               engine::ParcelKey key)
    : parcels_(parcels), sharers_(std::move(sharers)), bytes_(bytes), chunks_(chunks), key_(std::move(key)) {}

std::shared_ptr<BlockLanding> CommonLandings::next() {
  SLUICE_CHECK(!sharers_.empty(), "'" + key_.edge + "': a landing for a rank that receives nothing");
  const int number = count_++;
  return std::make_shared<BlockLanding>(block(number), bytes_, number, static_cast<int>(sharers_.size()));
}

std::shared_ptr<Block> CommonLandings::block(int number) {
  engine::ParcelKey key = key_;
  key.number = number;
  key.of = engine::ParcelOf::kLanding;
  const int own = parcels_.world().rank;
  if (own != sharers_.front()) return borrowed(key);
  std::shared_ptr<Block> made = parcels_.new_landing(BlockLanding::block_bytes(bytes_, chunks_));
  for (const int other : sharers_)
    if (other != own) parcels_.lend(other, key, made);
  return made;
}

// Parcels that have ended forget who waits for what, and the promise is broken.
std::shared_ptr<Block> CommonLandings::borrowed(const engine::ParcelKey& key) {
  const int first = sharers_.front();
  auto lent = std::make_shared<std::promise<std::shared_ptr<Block>>>();
  auto block = lent->get_future();
  parcels_.borrow(first, key, [lent](std::shared_ptr<Block> of_first) { lent->set_value(std::move(of_first)); });
  lent.reset();
  try {
    return block.get();
  } catch (const std::future_error&) {
    throw UserError("the run has ended before rank " + std::to_string(first) + " has lent " + engine::text_of(key),
                    "look at what rank " + std::to_string(first) + " said last");
  }
}

}  // namespace sluice::comm
