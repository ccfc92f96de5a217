#include "bench/bare_threads.h"

#include <chrono>
#include <semaphore>
#include <thread>
#include <vector>

#include "bench/bench_nodes.h"

namespace sluice::bench {

double bare_threads_seconds(const Durations& durations_ms, size_t in_flight) {
  using Semaphore = std::counting_semaphore<>;
  Semaphore credit(static_cast<std::ptrdiff_t>(in_flight));
  std::array<Semaphore, kStages - 1> handed_on{Semaphore(0), Semaphore(0), Semaphore(0)};  // micro-batches, which come in order
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::jthread> threads;
  for (size_t s = 0; s < kStages; ++s) {
    threads.emplace_back([&, s] {
      sleep_precisely();
      Semaphore& before = s == 0 ? credit : handed_on[s - 1];
      Semaphore& behind = s + 1 == kStages ? credit : handed_on[s];
      for (const auto& stages_ms : durations_ms) {
        before.acquire();
        sleep_for_us(stages_ms[s] * 1e3);
        behind.release();
      }
    });
  }
  threads.clear();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace sluice::bench
