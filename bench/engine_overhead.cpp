// What does the engine cost for each micro-batch and node, when the nodes do nothing?
//
// A chain of 16 nodes against a chain of one, so that what happens once for each micro-batch (source, packing, credit) cancels:
// all on one executor ("inline") or on two in turn ("hop"), with and without the run folder's trace. The reference has the same
// shape in oneTBB alone: serial function_nodes on one thread, async_nodes bridged to two threads. Many micro-batches are in
// flight.

#include <chrono>
#include <string>

#include "bench/raw_graph.h"
#include "bench/report.h"
#include "bench/world.h"

namespace sluice::bench {
namespace {

constexpr int kLong = 16;
constexpr int kShort = 1;

struct Size {
  int repetitions;
  int64_t iterations;     // of a run, the first not counted
  int64_t micro_batches;  // of an iteration
};

struct Shape {
  std::string name;
  bool hops;
  bool traced;
};

// One token a micro-batch; the source stands where the chain's second node stands.
engine::PipelineBuilder chain(int nodes, const Shape& shape, const Size& size) {
  engine::PipelineBuilder builder("chain", size.iterations);
  builder.budget(4096, 1).set("runtime", "cores", int64_t{2});
  builder.node("n0", "bench_numbers", {}, {{"groups_per_iteration", size.micro_batches}});
  for (int i = 1; i <= nodes; ++i) {
    builder.node("n" + std::to_string(i), "bench_touch", {"n" + std::to_string(i - 1)}, {},
                 shape.hops && i % 2 == 1 ? "cpu:1" : "");
  }
  return builder;
}

// For each micro-batch.
struct Cost {
  double wall_ns = 0;
  double executor_ns = 0;  // processor time of the one executor
  double process_ns = 0;   // of all threads, to the last byte of the trace
};

// Of a whole chain.
Cost ours(int nodes, const Shape& shape, const Size& size) {
  const World world(chain(nodes, shape, size));
  const Timed timed = run(world, {.traced = shape.traced});
  const double steady = 1e9 / static_cast<double>((size.iterations - 1) * size.micro_batches);
  return {.wall_ns = timed.steady_seconds() * steady,
          .executor_ns = timed.steady_cpu_seconds * steady,
          .process_ns = timed.cpu_seconds * 1e9 / static_cast<double>(size.iterations * size.micro_batches)};
}

Cost raw(int nodes, const Shape& shape, const Size& size) {
  const auto graph = shape.hops ? raw_hops(nodes) : raw_inline(nodes);
  graph->run(size.micro_batches);
  const int64_t count = (size.iterations - 1) * size.micro_batches;
  const double process = cpu_seconds(), thread = thread_cpu_seconds();
  const auto begin = std::chrono::steady_clock::now();
  graph->run(count);
  const std::chrono::duration<double> wall = std::chrono::steady_clock::now() - begin;
  const double each = 1e9 / static_cast<double>(count);
  return {.wall_ns = wall.count() * each,
          .executor_ns = (thread_cpu_seconds() - thread) * each,
          .process_ns = (cpu_seconds() - process) * each};
}

template <class Measure>
Cost per_node(Measure measure, const Shape& shape, const Size& size) {
  const Cost few = measure(kShort, shape, size), many = measure(kLong, shape, size);
  constexpr double kNodes = kLong - kShort;
  return {.wall_ns = (many.wall_ns - few.wall_ns) / kNodes,
          .executor_ns = (many.executor_ns - few.executor_ns) / kNodes,
          .process_ns = (many.process_ns - few.process_ns) / kNodes};
}

void add(Case& result, double ours, double reference) {
  result.ours.push_back(ours);
  result.reference.push_back(reference);
}

void measure(const Shape& shape, const Size& size) {
  Case executor{.bench = "engine_overhead", .name = shape.name, .unit = "ns", .ours = {}, .reference = {}};
  Case wall = executor, process = executor;
  executor.name += ", processor time of the executor";
  wall.name += ", wall";
  process.name += ", processor time of all threads";
  executor.goal = {.ours_at_most = 250, .ratio_at_most = 2.5};
  if (shape.hops) wall.goal.above_reference_at_most = 2000;
  for (int i = 0; i < size.repetitions; ++i) {
    const Cost engine = per_node(ours, shape, size);
    const Cost plain = per_node(raw, shape, size);
    add(wall, engine.wall_ns, plain.wall_ns);
    add(executor, engine.executor_ns, plain.executor_ns);
    add(process, engine.process_ns, plain.process_ns);
  }
  if (!shape.hops) print(executor);
  print(wall);
  print(process);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  using sluice::bench::Size;
  const Size size = sluice::bench::is_smoke(argc, argv) ? Size{1, 3, 200} : Size{15, 12, 2000};
  sluice::bench::measure({"inline", false, false}, size);
  sluice::bench::measure({"inline, traced", false, true}, size);
  sluice::bench::measure({"hop", true, false}, size);
  sluice::bench::measure({"hop, traced", true, true}, size);
}
