#include "comm/weights/publications_over.h"

#include <utility>

#include "base/error.h"

namespace sluice::comm {

// One that is told of losses as long as it lives.
class PublicationsOver::Listed final : public engine::Publication {
 public:
  Listed(PublicationsOver& all, engine::PublicationLayout layout, Events events, ReceiverLosses losses)
      : all_(all), own_(all.parcels_, std::move(layout), std::move(events), std::move(losses)) {}
  ~Listed() override {
    const std::lock_guard lock(all_.mutex_);
    all_.publications_.erase(&own_);
  }

  DirectPublication& own() { return own_; }

  std::shared_ptr<std::byte> new_source(size_t bytes) override { return own_.new_source(bytes); }
  std::vector<engine::Range> stretches(engine::Range range) const override { return own_.stretches(range); }
  void offer(int64_t version, engine::Range range, std::shared_ptr<const std::byte> bytes,
             std::vector<uint32_t> checksums) override {
    own_.offer(version, range, std::move(bytes), std::move(checksums));
  }
  std::shared_ptr<engine::Landing> new_landing() override { return own_.new_landing(); }
  void receive(int64_t version, std::shared_ptr<engine::Landing> into) override { own_.receive(version, std::move(into)); }
  void acknowledge(int64_t version) override { own_.acknowledge(version); }

 private:
  PublicationsOver& all_;
  DirectPublication own_;
};

namespace {

DirectParcels& direct(engine::Parcels& parcels) {
  auto* const own = dynamic_cast<DirectParcels*>(&parcels);
  SLUICE_CHECK(own != nullptr, "weights over parcels of another kind");
  return *own;
}

}  // namespace

PublicationsOver::PublicationsOver(engine::Parcels& parcels, bool may_be_lost)
    : parcels_(direct(parcels)), losses_{.may_be = may_be_lost, .ranks = {}} {}

std::unique_ptr<engine::Publication> PublicationsOver::publication(engine::PublicationLayout layout,
                                                                   engine::Publication::Events events) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<Listed>(*this, std::move(layout), std::move(events), losses_);
  publications_.insert(&made->own());
  return made;
}

void PublicationsOver::lose(int rank) {
  const std::lock_guard lock(mutex_);
  losses_.ranks[rank] = ReceiverLosses::kNever;
  for (DirectPublication* publication : publications_) publication->lose(rank);
}

void PublicationsOver::take_back(int rank, int64_t first_version) {
  const std::lock_guard lock(mutex_);
  losses_.ranks[rank] = first_version;
  for (DirectPublication* publication : publications_) publication->take_back(rank, first_version);
}

}  // namespace sluice::comm
