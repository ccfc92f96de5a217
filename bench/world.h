#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/contract/spec/pipeline_builder.h"
#include "engine/run/run.h"

namespace sluice::bench {

/// A pipeline of bench nodes that was proven, with the registry that it refers to.
class World {
 public:
  /// Ends the program with the problems when there are any.
  explicit World(const engine::PipelineBuilder& builder);
  World(const World&) = delete;
  World& operator=(const World&) = delete;

  const engine::Plan& plan() const { return *plan_; }

 private:
  engine::Registry registry_;
  std::unique_ptr<engine::Plan> plan_;
};

/// What a run took.
struct Timed {
  std::vector<double> iteration_seconds;  // between the ends of iterations; the first is not among them
  double steady_cpu_seconds = 0;          // of these: of the thread that ends iterations, which is all there is with one executor
  double seconds = 0;                     // of all of it
  double cpu_seconds = 0;                 // of all threads of the process, files included

  /// Sum of what came after the first iterations.
  double steady_seconds() const;
};

struct How {
  bool traced = false;  // with a run folder, which is removed afterwards
  std::function<void(const engine::IterationReport&)> on_iteration = {};
  std::vector<engine::WorkObserver*> observers = {};
};

/// Runs it to the end; a failure ends the program.
Timed run(const World& world, const How& how = {});

/// Of the process, or of the calling thread.
double cpu_seconds();
double thread_cpu_seconds();

}  // namespace sluice::bench
