#include "engine/checkpoint/checkpointer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/error.h"
#include "base/files/path_kind.h"
#include "base/text/strings.h"
#include "engine/checkpoint/checkpoint_schedule.h"
#include "engine/contract/columns/contract_breach.h"
#include "engine/contract/run_folder.h"
#include "engine/observe/engine_metrics.h"

namespace sluice::engine {
namespace fs = std::filesystem;
namespace {

// What a user's function makes up is known once an iteration has it all; a misspelt one would never be the best. Anything else
// was checked with the pipeline, and may well be missing from an iteration.
void refuse_unknown_metric(const Plan& plan, const IterationReport& report) {
  const std::optional<std::string>& wanted = plan.checkpoint.keep_best;
  if (!wanted || !metrics::is_of_family(plan, *wanted)) return;
  std::vector<std::string> names;
  for (const auto& [name, value] : report.metrics) names.push_back(name);
  if (std::ranges::find(names, *wanted) != names.end()) return;
  const std::string near = nearest_metric(*wanted, names);
  throw UserError(
      "[checkpoint] keep_best = " + sluice::quoted(*wanted) + ": no metric of this pipeline is called so",
      near.empty() ? "the metrics are those of a line of metrics.jsonl" : "did you mean " + sluice::quoted(near) + "?");
}

// What a checkpoint is known by: measurements of the weights before training are not its own.
MetricRow metrics_of_checkpoint(const Plan& plan, const IterationReport& report) {
  MetricRow own = report.metrics;
  std::erase_if(own, [&](const auto& metric) { return metrics::tells_of_first_weights(plan, metric.first, report.iteration); });
  return own;
}

// What a contract does not declare no check has seen: it may lie outside of the run folder, and be what a run cuts that goes on.
void refuse_undeclared_files(const Plan& plan, const std::string& node, const NodeState& state) {
  const std::vector<FileNeed>& declared = std::ranges::find(plan.nodes, node, &PlanNode::name)->needs.files;
  for (const auto& [file, bytes] : state.files) {
    if (std::ranges::find(declared, file, &FileNeed::path) == declared.end())
      throw_contract_breach("it says that it appends to file " + sluice::quoted(file) + ", which its contract does not declare");
    if (bytes < 0)
      throw_contract_breach("it says that file " + sluice::quoted(file) + " has " + std::to_string(bytes) + " bytes");
  }
}

// Others of its files are written again where it was; not so what grows. What cannot be looked at may still be there.
bool is_known_to_be_gone(const fs::path& run_folder) {
  try {
    return !is_there(run_folder / kMetricsFile) && !is_there(run_folder / kPipelineFile);
  } catch (const UserError&) {
    return false;
  }
}

}  // namespace

Checkpointer::Checkpointer(Parts parts)
    : parts_(std::move(parts)),
      writer_(parts_.writer),
      others_(parts_.plan, parts_.reductions),
      last_cut_ns_(parts_.clock.now_ns()),
      saved_(parts_.begun),
      last_(parts_.last) {
  thread_ = std::thread([this] { loop(); });
}

Checkpointer::~Checkpointer() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
  writer_.drop();
}

// With the lock held. The last iteration is left to save_last().
bool Checkpointer::due(int64_t iteration) const {
  const CheckpointSettings& settings = parts_.plan.checkpoint;
  if (iteration + 1 == parts_.plan.pipeline.iterations) return false;
  const double minutes = static_cast<double>(parts_.clock.now_ns() - last_cut_ns_) * 1e-9 / 60;
  return saved_by_count(parts_.plan, iteration) || wanted_ || (settings.every_minutes > 0 && minutes >= settings.every_minutes);
}

// Without the memory for the copies the first one would wait for it.
void Checkpointer::source_ended(int64_t iteration) {
  std::unique_lock lock(mutex_);
  if (iteration <= decided_) return;
  decided_ = iteration;
  if (!due(iteration)) return;
  changed_.wait(lock, [this] { return prepared_; });
  wanted_ = cut_ >= 0;
  if (wanted_) return;
  cut_ = iteration;
  last_cut_ns_ = parts_.clock.now_ns();
}

bool Checkpointer::announce(const std::vector<std::string>& models, int64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    if (cut_ != iteration || failure_) return false;
  }
  try {
    writer_.begin(iteration + 1);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
    return false;
  }
  for (const std::string& model : models) others_.expect(model, iteration + 1, /*at_the_end=*/false);
  return true;
}

void Checkpointer::node_ended(const std::string& node, int64_t iteration, const NodeBase& implementation) {
  StateWriter writer;
  implementation.save(writer);
  NodeState state = writer.take();
  refuse_undeclared_files(parts_.plan, node, state);
  const int64_t bytes = state_bytes(state);
  const std::lock_guard lock(mutex_);
  states_[iteration][node] = std::move(state);
  state_bytes_[node] = bytes;
  refuse_too_much_state();
}

// With the lock held. The node that has ended now need not be the one that keeps most.
void Checkpointer::refuse_too_much_state() const {
  const auto add = [](int64_t sum, const auto& of_node) { return sum + of_node.second; };
  const int64_t bytes = std::accumulate(state_bytes_.begin(), state_bytes_.end(), int64_t{0}, add);
  if (bytes <= kMostStateBytesOfAll) return;
  const auto most = std::ranges::max_element(state_bytes_, {}, [](const auto& of_node) { return of_node.second; });
  throw UserError("the nodes of this pipeline keep " + human_bytes(bytes) + " together, '" + most->first + "' " +
                      human_bytes(most->second) + " of them; a checkpoint can hold " + human_bytes(kMostStateBytesOfAll),
                  "keep only what cannot be made again, or have fewer such nodes");
}

void Checkpointer::model_updated(const std::string& model, int64_t iteration) {
  {
    const std::lock_guard lock(mutex_);
    if (cut_ != iteration || failure_) return;
  }
  const int64_t begin = parts_.clock.now_ns();
  if (parts_.plan.checkpoint_copy == CheckpointCopy::kMemory)
    take_snapshot(parts_.writer.models, model, iteration + 1, CheckpointCopy::kMemory);
  else
    save_in_place(model, iteration + 1);
  const std::lock_guard lock(mutex_);
  seconds_ += static_cast<double>(parts_.clock.now_ns() - begin) * 1e-9;
}

// The run goes on whatever fails: [checkpoint] on_failure is for the thread that completes the cut.
void Checkpointer::save_in_place(const std::string& model, int64_t iterations) {
  ++held_up_;
  try {
    writer_.begin(iterations);
    take_snapshot(parts_.writer.models, model, iterations, CheckpointCopy::kNone);
    writer_.write_model(model);
  } catch (...) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = std::current_exception();
  }
  --held_up_;
}

void Checkpointer::iteration_reported(const IterationReport& report, std::map<std::string, int64_t> growing) {
  try {
    refuse_unknown_metric(parts_.plan, report);
  } catch (const UserError&) {
    parts_.on_failure(std::current_exception());
  }
  {
    const std::lock_guard lock(mutex_);
    states_.erase(states_.begin(), states_.find(report.iteration));
    last_report_ = {.iteration = report.iteration, .metrics = metrics_of_checkpoint(parts_.plan, report)};
    last_growing_ = std::move(growing);
    if (cut_ != report.iteration) return;
    complete_ = Cut{.iterations = cut_ + 1, .nodes = states_[cut_], .metrics = last_report_.metrics, .growing = last_growing_};
  }
  changed_.notify_all();
}

void Checkpointer::save_now() {
  const std::lock_guard lock(mutex_);
  wanted_ = true;
}

void Checkpointer::prepare() {
  prepare_copies(parts_.plan, parts_.writer.models);
  const std::lock_guard lock(mutex_);
  prepared_ = true;
  changed_.notify_all();
}

// Waits for: a cut to be complete. Ends when: the destructor is called and nothing is left to write.
void Checkpointer::loop() {
  prepare();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || complete_; });
    if (!complete_) return;
    const Cut cut = std::move(*complete_);
    const std::exception_ptr failure = failure_;
    lock.unlock();
    try {
      if (failure) std::rethrow_exception(failure);
      write(cut);
    } catch (const std::exception& error) {
      failed(message_of(error));
    }
    others_.settle();
    writer_.drop();
    lock.lock();
    complete_.reset();
    failure_ = nullptr;
    cut_ = -1;
    changed_.notify_all();
  }
}

// On the writing thread.
void Checkpointer::write(const Cut& cut) {
  if (parts_.plan.checkpoint_copy == CheckpointCopy::kMemory) {
    writer_.begin(cut.iterations);
    for (const auto& [name, saved] : parts_.writer.models) writer_.write_model(name);
  }
  finish(cut);
}

// With all models written.
void Checkpointer::finish(const Cut& cut) {
  if (parts_.before_write) parts_.before_write();
  others_.await();
  writer_.begin(cut.iterations);  // where no model is trained
  fs::path place = writer_.finish(cut);
  const std::lock_guard lock(mutex_);
  last_ = std::move(place);
  saved_ = cut.iterations;
}

// In a catch block. Nothing can be saved any more where the run folder is not where it was.
void Checkpointer::failed(const std::string& what) {
  const fs::path& folder = parts_.writer.run_folder;
  if (is_known_to_be_gone(folder)) {
    const UserError gone(
        "the run folder " + folder.string() + " is gone: it was removed or renamed while the run went on (" + what + ")",
        "where it is now, rlhf-run resume goes on with it from its last checkpoint");
    parts_.on_failure(std::make_exception_ptr(gone));
  } else if (parts_.plan.checkpoint.on_failure == OnSaveFailure::kStop) {
    parts_.on_failure(std::current_exception());
  } else if (parts_.writer.on_warning) {
    parts_.writer.on_warning("the run could not be saved and goes on; earlier checkpoints are as they were: " + what);
  }
}

void Checkpointer::save_last() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return prepared_ && !complete_; });
  cut_ = -1;  // one that was never complete
  others_.forget();
  failure_ = nullptr;
  const int64_t iterations = last_report_.iteration + 1;
  if (iterations <= saved_) return others_.tell_of_last_save(0);
  const Cut cut{.iterations = iterations,
                .nodes = states_[last_report_.iteration],
                .metrics = last_report_.metrics,
                .growing = last_growing_};
  lock.unlock();
  writer_.begin(iterations);
  for (const auto& [name, saved] : parts_.writer.models) others_.expect(name, iterations, /*at_the_end=*/true);
  others_.tell_of_last_save(iterations);
  for (const auto& [name, saved] : parts_.writer.models) {
    take_snapshot(parts_.writer.models, name, iterations, CheckpointCopy::kNone);  // nothing changes any more
    writer_.write_model(name);
  }
  finish(cut);
  others_.tell_that_it_is_saved(iterations);
}

void Checkpointer::finish_writing(std::chrono::seconds limit) {
  std::unique_lock lock(mutex_);
  changed_.wait_for(lock, limit, [this] { return !complete_; });
}

fs::path Checkpointer::last() const {
  const std::lock_guard lock(mutex_);
  return last_;
}

double Checkpointer::take_seconds() {
  const std::lock_guard lock(mutex_);
  return std::exchange(seconds_, 0);
}

}  // namespace sluice::engine
