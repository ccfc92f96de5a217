#pragma once

#include <optional>

#include "engine/contract/world/publication.h"
#include "engine/ranks/mail.h"
#include "engine/ranks/parcels.h"

namespace sluice::engine {

/// By what ranks work for each other: words, columns, and weights. All outlive the run.
struct RankLinks {
  Mail& mail;
  Parcels& parcels;
  Publications* publications = nullptr;  // null: the plan has no roles
};

/// Null: there are no links, or none for weights.
inline Publications* publications_of(const std::optional<RankLinks>& links) { return links ? links->publications : nullptr; }

}  // namespace sluice::engine
