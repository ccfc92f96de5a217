#pragma once

#include <optional>
#include <string>

#include "base/process/world_environment.h"

namespace sluice::models {

inline constexpr const char* kVisibleGpus = "CUDA_VISIBLE_DEVICES";  // the driver looks at it once a process

/// What CUDA_VISIBLE_DEVICES says for one of the ranks of a host that are started alike: of the GPUs that all of them see each
/// has as many, one after the other, so that "cuda:0" is another GPU on each. Where there are fewer GPUs than ranks the first
/// ranks have one, and the others none.
///
/// visible   what it says already; nothing: it is not set
/// there     GPUs that the driver shows under that
/// returns   nothing: it stays as it is, since the rank is alone on its host, there is no GPU, or it sees a single one, which whoever
///           started it has chosen for it
std::optional<std::string> gpus_of_rank(const WorldEnvironment& world, const std::optional<std::string>& visible, int there);

/// Sets it for this process. Before it asks for a GPU first, and before it has threads: asks the driver in a process of its own,
/// since the driver looks at the variable once.
void see_gpus_of_rank(const WorldEnvironment& world);

}  // namespace sluice::models
