#include "comm/weights/direct_publication.h"

#include <utility>

namespace sluice::comm {

DirectPublication::DirectPublication(DirectParcels& parcels, engine::PublicationLayout layout, Events events,
                                     ReceiverLosses losses)
    : exchange_(std::make_shared<PublicationExchange>(parcels, std::move(layout), std::move(events), std::move(losses))) {}

DirectPublication::~DirectPublication() { exchange_->close(); }

std::shared_ptr<std::byte> DirectPublication::new_source(size_t bytes) { return exchange_->new_source(bytes); }

std::vector<engine::Range> DirectPublication::stretches(engine::Range range) const { return exchange_->stretches(range); }

void DirectPublication::offer(int64_t version, engine::Range range, std::shared_ptr<const std::byte> bytes,
                              std::vector<uint32_t> checksums) {
  exchange_->offer(version, range, bytes, checksums);
}

std::shared_ptr<engine::Landing> DirectPublication::new_landing() { return exchange_->new_landing(); }

void DirectPublication::receive(int64_t version, std::shared_ptr<engine::Landing> into) { exchange_->receive(version, into); }

void DirectPublication::acknowledge(int64_t version) { exchange_->acknowledge(version); }

void DirectPublication::lose(int rank) { exchange_->lose(rank); }

void DirectPublication::take_back(int rank, int64_t first_version) { exchange_->take_back(rank, first_version); }

}  // namespace sluice::comm
