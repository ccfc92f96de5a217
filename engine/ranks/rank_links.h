#pragma once

#include "engine/contract/publication.h"
#include "engine/ranks/mail.h"
#include "engine/ranks/parcels.h"

namespace sluice::engine {

/// By what ranks work for each other: words, columns, and weights. All outlive the run.
struct RankLinks {
  Mail& mail;
  Parcels& parcels;
  Publications* publications = nullptr;  // null: the plan has no roles
};

}  // namespace sluice::engine
