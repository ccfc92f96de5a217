#pragma once

#include <optional>
#include <string>

#include "engine/memory/memory_report.h"
#include "engine/run/rank_costs.h"

namespace sluice::engine {

/// What another rank than 0 tells rank 0 of itself at the end of an iteration. A plain value.
struct ToldByRank {
  int rank = 0;
  MemoryReport memory;
  std::optional<RankCosts> costs;
  std::string slices;  // of its trace, as RankTrace::take() writes them; empty: it does not know the clock of rank 0 yet
};

std::string bytes_of(const ToldByRank& told);

/// Throws InternalError on what bytes_of() does not write.
ToldByRank told_by_rank_from(const std::string& bytes);

}  // namespace sluice::engine
