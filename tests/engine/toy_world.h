#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/contract/registry.h"
#include "tests/engine/toy_model.h"

namespace sluice::engine::toy {

// Node types without torch that make every mistake of the engine visible: each value is a hash of everything it should depend on
// (iteration, group, sample, the policy version's weights, the values it read, in order), so that a lost, doubled or reordered
// micro-batch, or a wrong version, changes what comes out.

uint64_t mix(uint64_t a, uint64_t b);

/// Hash of a text, the same on every machine.
uint64_t name_hash(const std::string& text);

inline constexpr Column<int64_t> kOrigin{"origin", Extent::kGroup};  // written by the source
inline constexpr Column<int64_t> kDrawn{"drawn", Extent::kSample};   // written by the rollout

/// Tokens of a sample: depends on the weights that drew it.
int64_t sample_tokens(uint64_t drawn, int64_t worst_sample_tokens);

/// `toy_source`, `toy_rollout` (model optional; one token a step; by parameter which samples take long, and that what is done
/// first takes the place of what is not, which is a mistake), `toy_mix` (reads any sample columns, writes one; barrier, failure,
/// pauses and a memory of earlier iterations by parameter), `toy_filter` (drops groups by the hash of the sample columns it
/// reads), `toy_train`, `toy_publish`; models of [models.NAME] have no parameters.
void register_toys(Registry& registry);

}  // namespace sluice::engine::toy
