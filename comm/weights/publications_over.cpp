#include "comm/weights/publications_over.h"

#include <utility>

#include "base/error.h"
#include "comm/parcels/direct_parcels.h"
#include "comm/weights/direct_publication.h"

namespace sluice::comm {
namespace {

class DirectPublications final : public engine::Publications {
 public:
  explicit DirectPublications(DirectParcels& parcels) : parcels_(parcels) {}

  std::unique_ptr<engine::Publication> publication(engine::PublicationLayout layout,
                                                   engine::Publication::Events events) override {
    return std::make_unique<DirectPublication>(parcels_, std::move(layout), std::move(events));
  }

 private:
  DirectParcels& parcels_;
};

}  // namespace

std::unique_ptr<engine::Publications> publications_over(engine::Parcels& parcels) {
  auto* const direct = dynamic_cast<DirectParcels*>(&parcels);
  SLUICE_CHECK(direct != nullptr, "weights over parcels of another kind");
  return std::make_unique<DirectPublications>(*direct);
}

}  // namespace sluice::comm
