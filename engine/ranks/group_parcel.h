#pragma once

#include "engine/contract/columns/micro_batch.h"
#include "engine/ranks/parcels.h"

namespace sluice::engine {

/// A group on its way from one rank to another: with or without samples. Columns are shared, not copied.
Parcel parcel_of(const Group& group);

/// The group of parcel_of(). Throws InternalError where the parcel is not one of a group.
Group group_of(const Parcel& parcel);

}  // namespace sluice::engine
