#pragma once

#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// Parcels that go on without ranks which may be lost.
class ParcelsWithoutLost : public engine::Parcels {
 public:
  /// That rank may be lost, and is: what is between the two is forgotten, and what is offered or granted to it from now on.
  virtual void lose(int rank) = 0;
};

}  // namespace sluice::comm
