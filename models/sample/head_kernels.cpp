#include "models/sample/head_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "models/kernels/parallel.h"
#include "models/kernels/row_kernels.h"

namespace sluice::models {
namespace {

constexpr int64_t kGrainElements = 1 << 14;  // that a thread is worth waking for

#define SLUICE_KERNELS "models/sample/head_kernels.inc"
#include "models/kernels/every_instruction_set.inc"

}  // namespace

void prepare_heads(const HeadArguments& arguments, InstructionSet set) {
  const KvCache& cache = arguments.cache;
  const int64_t width = (arguments.heads + 2 * cache.kv_heads()) * cache.head_dim();
  const auto kernel = with_kernels(set, [](auto kernels) { return kernels.prepare; });
  parallel_ranges(static_cast<int64_t>(arguments.tokens.size()), kGrainElements / width + 1,
                  [&](int64_t begin, int64_t end) { kernel(arguments, begin, end); });
}

}  // namespace sluice::models
