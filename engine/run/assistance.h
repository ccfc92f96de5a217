#pragma once

#include <exception>
#include <memory>

#include "engine/plan/plan.h"
#include "engine/run/run.h"

namespace sluice::engine {

/// What a rank does that computes passes with the one that leads it, or for ranks that ask it (Plan::assists): it has models, and
/// neither nodes nor data. With the first it does with the models what that rank does, at the same time.
///
/// Threads: the constructor and execute() on one, fail() on any. Of the options it reads those that concern models and ranks.
class Assistance {
 public:
  /// Loads the models. `plan` and its registry must outlive this. Throws UserError as Run does.
  Assistance(const Plan& plan, RunOptions options);
  ~Assistance();

  /// Once. Waits for: the rank that leads, or those that ask. Ends when: these are through, or the run has failed, which this
  /// throws.
  void execute();

  /// Another rank is lost: execute() throws this, if nothing else came before.
  void fail(const std::exception_ptr& error);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sluice::engine
