#pragma once

#include <memory>

#include "comm/store.h"
#include "engine/contract/publication.h"
#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// What weights go by between the ranks of a run, over its parcels, which are DirectParcels and outlive this. The ranks tell each
/// other whom they share memory with.
///
/// Waits for: all ranks to ask for it. Ends when: they have, or after `join_seconds`. Throws UserError where a rank does not.
std::unique_ptr<engine::Publications> publications_over(const Store& store, engine::Parcels& parcels, double join_seconds);

}  // namespace sluice::comm
