#pragma once

#include "engine/ranks/mail.h"
#include "engine/ranks/parcels.h"

namespace sluice::engine {

/// What a rank has groups made by others with: words and columns. Both outlive the run.
struct RankLinks {
  Mail& mail;
  Parcels& parcels;
};

}  // namespace sluice::engine
