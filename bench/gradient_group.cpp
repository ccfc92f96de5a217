// How fast are gradients added over ranks, in the fixed order that keeps their bits?
//
// 64 MiB on 2 and 4 ranks, processes of this machine that are connected over its loopback: comm/gradient_group.h against Gloo's
// own all-reduce, which adds in an order that depends on how many ranks there are. Both use connections of their own, and the
// ranks meet before each one.

#include <ATen/ops/zeros.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <string>
#include <torch/csrc/distributed/c10d/Backend.hpp>
#include <torch/csrc/distributed/c10d/TCPStore.hpp>
#include <vector>

#include "base/process/subprocess.h"
#include "base/text/strings.h"
#include "bench/report.h"
#include "comm/gradient_group.h"
#include "comm/process_group.h"

namespace sluice::bench {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int64_t kMiB = 1 << 20;

struct Sizes {
  int64_t bytes;
  int repetitions;
};

Sizes sizes_of(bool smoke) { return smoke ? Sizes{kMiB, 1} : Sizes{64 * kMiB, 21}; }

c10::intrusive_ptr<c10d::Store> store_at(uint16_t port, bool is_server) {
  c10d::TCPStoreOptions options;
  options.port = port;
  options.isServer = is_server;
  options.waitWorkers = false;
  return c10::make_intrusive<c10d::TCPStore>("127.0.0.1", options);
}

class Rank {
 public:
  Rank(c10d::Store& store, engine::World world, int64_t bytes)
      : gloo_(comm::connect_ranks(store, "gloo", world)),
        ours_(comm::connect_ranks(store, "ours", world), world.size, [](const std::exception_ptr&) { std::abort(); }),
        gradient_(at::zeros({bytes / static_cast<int64_t>(sizeof(float))})) {}

  double seconds_of_ours() {
    meet();
    const auto begin = Clock::now();
    std::promise<void> done;
    float* const floats = gradient_.data_ptr<float>();
    ours_.all_reduce({&floats, 1}, gradient_.numel(), [&done] { done.set_value(); });
    done.get_future().wait();
    return seconds_since(begin);
  }

  double seconds_of_gloo() {
    meet();
    const auto begin = Clock::now();
    std::vector<at::Tensor> tensors{gradient_};
    gloo_->allreduce(tensors)->wait();
    return seconds_since(begin);
  }

 private:
  static double seconds_since(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

  void meet() { gloo_->barrier()->wait(); }

  std::shared_ptr<c10d::Backend> gloo_;
  comm::GlooGradients ours_;
  at::Tensor gradient_;
};

// Rank 0 prints.
void be_a_rank(uint16_t port, engine::World world, bool smoke) {
  const auto [bytes, repetitions] = sizes_of(smoke);
  const auto store = store_at(port, /*is_server=*/false);
  Rank rank(*store, world, bytes);
  const double mib = static_cast<double>(bytes) / kMiB;
  Case result{.bench = "gradient_group", .unit = "MiB/s", .ours = {}, .reference = {}, .goal = {.ratio_at_least = 0.9}};
  result.name = std::to_string(bytes / kMiB) + " MiB on " + std::to_string(world.size) + " ranks";
  for (int i = -1; i < repetitions; ++i) {  // the first ones touch memory for the first time
    const double ours = rank.seconds_of_ours(), gloo = rank.seconds_of_gloo();
    if (i < 0) continue;
    result.ours.push_back(mib / ours);
    result.reference.push_back(mib / gloo);
  }
  if (world.rank == 0) print(result);
}

// Prints what rank 0 does.
void run(int size, bool smoke) {
  const auto store = store_at(0, /*is_server=*/true);
  const auto port = std::to_string(c10::static_intrusive_pointer_cast<c10d::TCPStore>(store)->getPort());
  std::vector<std::unique_ptr<Subprocess>> ranks;
  std::vector<Subprocess*> running;
  for (int rank = 0; rank < size; ++rank) {
    ranks.push_back(std::make_unique<Subprocess>(SubprocessOptions{
        .arguments = {"/proc/self/exe", "--rank", std::to_string(rank), std::to_string(size), port, smoke ? "smoke" : "all"}}));
    running.push_back(ranks.back().get());
  }
  const auto until = Clock::now() + std::chrono::minutes(10);
  while (!running.empty() && Clock::now() < until) {
    Subprocess::exchange(running, until);
    std::erase_if(running, [](Subprocess* rank) { return rank->ended(); });
  }
  std::fputs(ranks.front()->take_output().c_str(), stdout);
  for (const auto& rank : ranks) {
    if (rank->ended() && rank->succeeded()) continue;
    std::fprintf(stderr, "a rank %s\n%s", rank->ended() ? rank->how_it_ended().c_str() : "did not end", rank->errors().c_str());
    std::exit(1);
  }
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (argc == 6 && std::string(argv[1]) == "--rank") {
    be_a_rank(static_cast<uint16_t>(std::stoi(argv[4])), {std::stoi(argv[2]), std::stoi(argv[3])},
              std::string(argv[5]) == "smoke");
    return 0;
  }
  const bool smoke = is_smoke(argc, argv);
  for (const int size : {2, 4}) run(size, smoke);
  return 0;
}
