#pragma once

#include <cstdint>

#include "base/function_ref.h"

namespace sluice::models {

/// Calls `work(begin, end)` on disjoint ranges that cover [0, count) and returns when all are done. Each thread has a part, which
/// it takes piece by piece, and then what others have not got to: a thread whose core something else takes away for a while holds
/// up the others for some pieces, not for its part. Which thread does which is by chance. Ranges of fewer than `grain` are not
/// split. Inside such a loop the whole range is one. An exception is passed on.
///
/// While other programs take so much of the machine that sharing makes loops slower, the calling thread does all ranges itself
/// (loop_sharing.h).
///
/// The threads are oneTBB's: those of all loops of the process together are no more than its cores, they look for work for some
/// microseconds after a loop and then sleep, and one that finds a loop unfinished takes from it, whoever has been away.
/// LibTorch's own operators stay on the thread that calls them (nodes/models/passes/threads.h): its OpenMP threads would spin for
/// milliseconds after each of them, on the cores that these loops need.
void parallel_ranges(int64_t count, int64_t grain, FunctionRef<void(int64_t begin, int64_t end)> work);

/// How many threads share the loops of the calling thread, itself included: all cores that the process may use, until it says
/// otherwise. More than there are cores is allowed, and as good as that many.
int64_t loop_threads();
void set_loop_threads(int64_t threads);

}  // namespace sluice::models
