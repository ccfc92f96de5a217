#include "engine/run/assistance.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/files/confined_file_system.h"
#include "engine/run/resume.h"
#include "engine/schedule/state/failure.h"
#include "engine/schedule/state/workload.h"

namespace sluice::engine {
namespace {

// Of all executors on which passes of the model are computed, the most that one has.
int threads_for(const Plan& plan, const std::string& model) {
  int threads = 1;
  for (const PlanNode& node : plan.nodes) {
    if (std::ranges::find(node.needs.models, model, &ModelNeed::model) == node.needs.models.end()) continue;
    threads = std::max(threads, plan.threads_of(node));
  }
  return threads;
}

}  // namespace

struct Assistance::Impl {
  Impl(const Plan& plan_, RunOptions options_)
      : plan(plan_),
        options(std::move(options_)),
        files(writable_folders(plan, options.folder, /*writes_folder=*/false), options.files) {
    load_models(plan, {*options.reductions, options.common_memory, publications_of(options.links), options.passes}, workload);
    if (options.resume_from.empty()) return;
    const Manifest manifest = read_manifest(options.resume_from);
    refuse_changes(manifest, plan, options.accept_changes);
    restore_models(trained_models(plan, workload.models), options.resume_from, manifest);
  }

  void let_everything_end() {
    options.passes->abandon();
    options.reductions->abandon();
  }

  // The rank that leads knows that all is done, though word of it that concerns this one alone may be on its way.
  void leave() const {
    if (options.links) options.links->parcels.expect_early_ends();
  }

  void assist(const std::string& name, Model& model) {
    try {
      if (options.on_executor_start) options.on_executor_start({.threads = threads_for(plan, name)});
      model.assist(files);
    } catch (...) {
      failure.capture("passes of model " + name);
      let_everything_end();
    }
  }

  const Plan& plan;
  const RunOptions options;
  ConfinedFileSystem files;
  Workload workload;
  FailureSlot failure;
};

Assistance::Assistance(const Plan& plan, RunOptions options) : impl_(std::make_unique<Impl>(plan, std::move(options))) {}

Assistance::~Assistance() = default;

void Assistance::execute() {
  {
    std::vector<std::jthread> threads;
    for (const auto& entry : impl_->workload.models)
      threads.emplace_back([this, &entry] { impl_->assist(entry.first, *entry.second); });
  }
  impl_->failure.rethrow();
  impl_->leave();
}

void Assistance::fail(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (...) {
    impl_->failure.capture();
  }
  impl_->let_everything_end();
}

}  // namespace sluice::engine
