#include "models/kernels/parallel.h"

#include <ATen/Parallel.h>
#include <ATen/TensorIterator.h>
#include <ATen/ops/arange.h>

#include <algorithm>
#include <atomic>
#include <optional>

#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#endif

namespace sluice::models {
namespace {

constexpr int64_t kPieces = 4;  // of a thread

/// An iterator over one index for each thread; making one costs more than most ranges.
struct ThreadIndices {
  int64_t threads = 0;
  std::optional<at::TensorIterator> iterator;

  void reach(int64_t count) {
    if (threads == count) return;
    const at::Tensor indices = at::arange(count, at::kLong);
    iterator = at::TensorIteratorConfig().resize_outputs(false).check_all_same_dtype(false).add_owned_output(indices).build();
    threads = count;
  }
};

// ThreadSanitizer does not see how LibTorch's OpenMP, which is built without it, hands work over and waits for it.
class Handover {
 public:
#ifdef __SANITIZE_THREAD__
  void give() { __tsan_release(this); }
  void take() { __tsan_acquire(this); }
#else
  void give() {}
  void take() {}
#endif
};

// Calls `work(first, last)` for disjoint ranges of the threads, on each its own.
void on_each_thread(int64_t threads, c10::function_ref<void(int64_t, int64_t)> work) {
  thread_local ThreadIndices indices;
  indices.reach(threads);
  static Handover begin, end;  // not in the closure, which a thread may read only behind begin
  const auto run = [&](char** data, const int64_t*, int64_t inner, int64_t outer) {
    begin.take();
    const int64_t first = *reinterpret_cast<const int64_t*>(data[0]), last = first + inner * outer;
    work(first, last);
    end.give();
  };
  begin.give();
  indices.iterator->for_each(run, /*grain_size=*/1);
  end.take();
}

bool is_serial(int64_t count, int64_t grain) { return count <= grain || at::get_num_threads() == 1 || at::in_parallel_region(); }

}  // namespace

void parallel_ranges(int64_t count, int64_t grain, c10::function_ref<void(int64_t, int64_t)> work) {
  if (count <= 0) return;
  if (is_serial(count, grain)) return work(0, count);
  const int64_t threads = at::get_num_threads(), grains = (count + grain - 1) / grain;
  on_each_thread(threads, [&](int64_t first, int64_t last) {
    const int64_t begin = grains * first / threads * grain, end = std::min(count, grains * last / threads * grain);
    if (begin < end) work(begin, end);
  });
}

void parallel_pieces(int64_t count, c10::function_ref<void(int64_t, int64_t)> work) {
  if (count <= 0) return;
  if (is_serial(count, 1)) return work(0, count);
  const int64_t threads = at::get_num_threads(), pieces = std::min(count, threads * kPieces);
  std::atomic<int64_t> next = 0;
  on_each_thread(threads, [&](int64_t, int64_t) {
    for (int64_t piece = next++; piece < pieces; piece = next++) work(count * piece / pieces, count * (piece + 1) / pieces);
  });
}

}  // namespace sluice::models
