#pragma once

#include <memory>

#include "engine/contract/publication.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// What weights go by between the ranks of a run, over its parcels, which are DirectParcels and outlive this.
std::unique_ptr<engine::Publications> publications_over(engine::Parcels& parcels);

}  // namespace sluice::comm
