#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "comm/store_connection.h"
#include "engine/contract/world/world.h"

namespace sluice::comm {

/// What rank 0 says of what all ranks have handed in.
struct Verdict {
  std::string problem;  // empty: all is well
  std::string help;
  std::string facts;  // what all ranks are to know
};

/// By rank; nothing: it did not come in time.
using Judge = std::function<Verdict(const std::vector<std::optional<std::string>>& handed_in)>;

/// Every rank hands in a text under a name, and all get what rank 0 makes of them: so all of them fail with the same words, or
/// none. Returns the facts.
///
/// Waits for: the texts of all ranks, on rank 0; its verdict, on the others. Ends when: they are there, or it is `until`, when
/// rank 0 judges what came; the others give it a little longer. Failure: UserError of the problem, on all ranks; StoreLost.
std::string all_agree(StoreConnection& store, const engine::World& world, const std::string& name, const std::string& mine,
                      Clock::time_point until, const Judge& judge);

/// This rank has handed in a text already, or another process as this rank.
bool has_handed_in(StoreConnection& store, const std::string& name, int rank);

/// What a rank has handed in, and what all got: of a name that all have agreed on. Waits until it is there, or until `until`, as
/// all_agree() does.
std::string handed_in_by(StoreConnection& store, const std::string& name, int rank, Clock::time_point until);
std::string facts_of(StoreConnection& store, const std::string& name, Clock::time_point until);

}  // namespace sluice::comm
