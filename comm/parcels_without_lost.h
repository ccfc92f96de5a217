#pragma once

#include <cstdint>
#include <vector>

#include "engine/ranks/parcels.h"

namespace sluice::comm {

/// Parcels that go on without ranks which may be lost.
class ParcelsWithoutLost : public engine::Parcels {
 public:
  /// By rank: ranks with equal numbers share memory. The same on all ranks.
  virtual const std::vector<int>& hosts() const = 0;

  /// That rank may be lost, and is: what is between the two is forgotten, and what is offered or granted to it from now on.
  virtual void lose(int rank) = 0;

  /// Another process has taken its place, and waits for this one to connect. Waits for: the connection. Ends when: it is there,
  /// or after some seconds; then that process is lost. By one thread.
  virtual void take_back(int rank, int64_t incarnation) = 0;
};

}  // namespace sluice::comm
