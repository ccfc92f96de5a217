// How long does it take until two ranks know the sum of a number?
//
// Two processes of this program, on one machine, add one number again and again: each waits for the sum and begins the next one.
// It takes one message each way through the store of the run (comm/store_mail.h). The reference is one question to the store and
// its answer: what a message cannot go below.

#include <chrono>
#include <cstdlib>
#include <future>
#include <memory>
#include <string>

#include "base/process/subprocess.h"
#include "base/text/strings.h"
#include "bench/report.h"
#include "comm/cluster.h"
#include "comm/sockets.h"

namespace sluice::bench {
namespace {

constexpr const char* kFollows = "follow";  // the first argument of the second process

struct Size {
  int repetitions;
  int64_t additions;  // of a repetition
};

constexpr Size kSmoke{1, 20}, kWhole{15, 2000};

comm::ClusterOptions options(int rank, int port) { return {.join = {.rank = rank, .size = 2, .port = port, .join_seconds = 30}}; }

// Adds numbers one after the other. Returns the microseconds of each.
double add(comm::Cluster& cluster, int64_t repetition, int64_t additions) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < additions; ++i) {
    engine::Part part{.name = "number", .recorded = true};
    part.numbers.sum.add(static_cast<double>(i));
    const auto came = std::make_shared<std::promise<void>>();  // outlives whoever waits
    cluster.reductions().combine({.iteration = repetition, .point = i}, {part},
                                 [came](const engine::Contribution&) { came->set_value(); });
    came->get_future().wait();
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(additions);
}

double ask(comm::StoreConnection& store, int64_t questions) {
  const auto begin = std::chrono::steady_clock::now();
  for (int64_t i = 0; i < questions; ++i) store.add("bench", 1);
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - begin;
  return time.count() / static_cast<double>(questions);
}

void follow(int port, const Size& size) {
  comm::Cluster cluster(options(1, port));
  for (int repetition = 0; repetition < size.repetitions; ++repetition) add(cluster, repetition, size.additions);
  cluster.end(true);
}

void measure(const std::string& program, const Size& size) {
  const int port = 20000 + static_cast<int>(std::chrono::steady_clock::now().time_since_epoch().count() % 10000);
  const Subprocess other({.arguments = {program, kFollows, std::to_string(port), size.repetitions == 1 ? "smoke" : "whole"}});
  comm::Cluster cluster(options(0, port));
  const auto store = cluster.store().connect();
  Case result{.bench = "rank_reduction", .name = "one number, two ranks", .unit = "us", .ours = {}, .reference = {}};
  for (int repetition = 0; repetition < size.repetitions; ++repetition) {
    result.ours.push_back(add(cluster, repetition, size.additions));
    result.reference.push_back(ask(*store, size.additions));
  }
  cluster.end(true);
  print(result);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using namespace sluice::bench;
  if (argc == 4 && argv[1] == std::string(kFollows)) {
    follow(std::atoi(argv[2]), argv[3] == std::string("smoke") ? kSmoke : kWhole);
    return 0;
  }
  measure(argv[0], is_smoke(argc, argv) ? kSmoke : kWhole);
}
