#include "cli/run/conduct_run.h"

#include <malloc.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <future>
#include <limits>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "base/text/printable.h"
#include "base/text/strings.h"
#include "cli/command/run_words.h"
#include "cli/process/exit_codes.h"
#include "cli/process/run_signals.h"
#include "cli/process/stop_signals.h"
#include "cli/run/begin_executor.h"
#include "cli/run/conduct_assistance.h"
#include "cli/run/crash_note.h"
#include "cli/run/display.h"
#include "cli/run/nvtx_ranges.h"
#include "cli/run/rank_options.h"
#include "cli/run/run_decision.h"
#include "cli/run/run_ending.h"
#include "cli/run/run_history.h"
#include "cli/run/shown_samples.h"
#include "cli/run_folder/accepted_changes.h"
#include "cli/run_folder/input_marks.h"
#include "cli/run_folder/run_folder.h"
#include "cli/track/trackers.h"
#include "engine/plan/pipeline_changes.h"
#include "engine/run/run.h"
#include "models/devices/device_named.h"
#include "models/memory/device_memory.h"
#include "models/memory/tensor_memory.h"
#include "models/memory/tensor_pool.h"

namespace sluice::cli {
namespace fs = std::filesystem;
namespace {

constexpr auto kPoll = std::chrono::milliseconds(50);  // of a rank without a display, for signals

// In which all ranks of a job that get a signal together have told rank 0 of it, with signs that come once a second.
constexpr auto kOneRequest = std::chrono::seconds(3);

// On a thread of its own, with which the helpers of its parallel loops end: OpenMP puts threads to sleep between any two loops as
// soon as it counts more than there are cores.
std::unique_ptr<engine::Run> make_run(const engine::Plan& plan, engine::RunOptions options, models::TensorMemory& tensors) {
  return std::async(std::launch::async,
                    [&] {
                      tensors.watch_this_thread();
                      return std::make_unique<engine::Run>(plan, std::move(options));
                    })
      .get();
}

// A node that hangs would keep the program for ever.
[[noreturn]] void leave_what_hangs(int code) {
  std::fflush(stdout);
  std::fflush(stderr);
  std::_Exit(code);
}

// What is too small for the pool of tensors stays with the process too.
void keep_freed_memory() {
  ::mallopt(M_MMAP_THRESHOLD, 1 << 25);  // the most that glibc takes
  ::mallopt(M_TRIM_THRESHOLD, std::numeric_limits<int>::max());
}

void print_changes(const engine::Plan& plan, const engine::Manifest& saved) {
  for (const engine::PipelineChange& change : engine::pipeline_changes(saved.pipeline, engine::keys_to_compare(plan))) {
    std::printf("going on with %s%s\n", printable(engine::change_text(change), Lines::kKept).c_str(),
                change.harmless ? "" : " (accepted: results change)");
  }
}

void print_start(const engine::Plan& plan, const ResumePoint& from) {
  const auto done = static_cast<long long>(from.manifest.iterations), all = static_cast<long long>(plan.pipeline.iterations);
  if (done < all) {
    std::printf("%s goes on from %s with iteration %lld of %lld\n", plan.pipeline.name.c_str(),
                printable(from.place.folder.string()).c_str(), done + 1, all);
  } else {
    std::printf("%s goes on from %s, where nothing is left but to end\n", plan.pipeline.name.c_str(),
                printable(from.place.folder.string()).c_str());
  }
  print_changes(plan, from.manifest);
  std::fflush(stdout);
}

// One run and what is around it. Its callbacks come from threads of the run and of the display.
class Conduct {
 public:
  Conduct(const engine::Plan& plan, const RunStart& start);
  ~Conduct() { start_.ranks.watch({}); }
  Conduct(const Conduct&) = delete;
  Conduct& operator=(const Conduct&) = delete;
  int execute();

 private:
  engine::RunOptions options();
  engine::RunSummary run_to_its_end();
  bool ended_before_it_began(const engine::RunSummary& summary) const;
  void end_with(const engine::RunSummary& summary);
  void start_trackers();
  void wait_for_trackers();
  bool an_assisting_rank_is_interrupted() const;
  void forward_signals();
  void forward_save_requests();
  bool another_rank_was_asked_to_save();
  void say(const std::string& line);
  void warn(const std::string& warning);
  engine::RankSign sign() const;
  std::string how_to_go_on() const;

  const engine::Plan& plan_;
  const RunStart& start_;
  RunHistory history_;
  CrashNote crash_note_;
  RunSignals signals_;  // from before the run starts programs such as scorers
  models::TensorMemory tensors_;
  std::optional<RangeObserver> ranges_;
  std::optional<ShownSamples> samples_;
  std::unique_ptr<engine::Run> run_;
  std::optional<StopSignals> stop_signals_;
  std::optional<Display> display_;    // while the run goes on
  std::optional<Trackers> trackers_;  // likewise
  std::atomic<int64_t> save_requests_{0};
  // Of the display's thread, or the one that stands for it.
  bool interrupted_ = false;
  int64_t save_requests_of_others_ = 0;
  std::chrono::steady_clock::time_point asked_to_save_at_;
};

Conduct::Conduct(const engine::Plan& plan, const RunStart& start)
    : plan_(plan),
      start_(start),
      history_(plan, start.from ? start.from->manifest.iterations : 0),
      crash_note_(plan, how_to_go_on()) {
  run_ = make_run(plan, options(), tensors_);
  models::TensorPool::of_process().keep_freed();
}

engine::RunOptions Conduct::options() {
  engine::RunOptions options = options_of_rank(start_);
  options.ranks = [this] { return start_.ranks.seen(); };
  options.clock_offset = [this] { return start_.ranks.clock_offset(); };
  if (start_.ranks.came_back()) options.comes_in = [this] { return start_.ranks.come_in(); };
  options.on_warning = [this](const std::string& warning) { warn(warning); };
  options.on_executor_start = [this](const engine::ExecutorStart& executor) {
    begin_executor(plan_, start_.ranks.rank(), executor);
    tensors_.watch_this_thread();
  };
  options.on_iteration = [this](const engine::IterationReport& report) {
    history_.add(report);
    if (display_) display_->iteration_done(samples_ ? samples_->take(report.iteration, display_->width()) : std::string());
  };
  options.tensors = {
      .live_bytes = [this] { return tensors_.live(); },
      .take_peak_bytes = [this] { return tensors_.take_peak(); },
      .peak_bytes_on = [](const std::string& device) { return models::peak_bytes_on(models::device_named(device).value()); }};
  if (start_.show_samples_every > 0 && ShownSamples::possible(plan_))
    options.observers.push_back(&samples_.emplace(start_.show_samples_every));
  options.observers.push_back(&crash_note_);
  if (auto hooks = nvtx_hooks()) options.observers.push_back(&ranges_.emplace(plan_, std::move(*hooks)));
  return options;
}

int Conduct::execute() {
  stop_signals_.emplace();
  if (start_.show_samples_every > 0 && !samples_)
    warn("--show-samples shows nothing: no node of this pipeline writes column response");
  start_.ranks.watch({.failed = [this](const std::exception_ptr& error) { run_->fail(error); },
                      .sign = [this] { return sign(); },
                      .lost = [this](int rank, const std::string& why) { run_->lose(rank, why); },
                      .back = [this](int rank, int64_t incarnation) { run_->take_back(rank, incarnation); }});
  engine::RunSummary summary = run_to_its_end();
  if (ended_before_it_began(summary)) summary.end = engine::RunEnd::kInterrupted, summary.error = {};
  // All that train are in the same case, and rank 0 tells of it. Nobody is to hurry it: it may be saving still.
  if (summary.end == engine::RunEnd::kCutShort && !start_.ranks.leads()) summary.end = engine::RunEnd::kDone, summary.error = {};
  end_with(summary);
  const int code = start_.ranks.was_given_up() ? kGivenUp : exit_code_of(summary, stop_signals_->seen());
  if (summary.hangs) leave_what_hangs(code);
  return code;
}

// All ranks were asked to end, and one that was not in the run yet has ended at once: that is no failure, and nothing was done.
bool Conduct::ended_before_it_began(const engine::RunSummary& summary) const {
  const int64_t begun = start_.from ? start_.from->manifest.iterations : 0;
  return summary.end == engine::RunEnd::kFailed && stop_signals_->seen() != 0 && start_.ranks.others_failed() &&
         summary.iterations == begun;
}

// Only one rank has the display.
engine::RunSummary Conduct::run_to_its_end() {
  if (start_.ranks.leads()) {
    display_.emplace(plan_, history_, *run_, [this] { forward_signals(); });
    start_trackers();
    engine::RunSummary summary = run_->execute();
    display_->stop();
    return summary;
  }
  const std::jthread poll([this](const std::stop_token& over) {
    for (; !over.stop_requested(); std::this_thread::sleep_for(kPoll)) forward_signals();
  });
  return run_->execute();
}

void Conduct::end_with(const engine::RunSummary& summary) {
  if (summary.error) {
    print_failure(summary, plan_.plugins);
    const fs::path last = last_checkpoint(summary, start_.folder);
    const bool rank_0_says = !start_.ranks.leads() && last.empty();
    if (!start_.ranks.was_given_up() && !rank_0_says) print_where_to_go_on(last, how_to_go_on());
  }
  if (display_) std::printf("%s\n", history_.summary(summary, start_.folder.string(), display_->able()).c_str());
  std::fflush(stdout);
  wait_for_trackers();
  const bool others_may_end = !summary.error || summary.end == engine::RunEnd::kCutShort;  // they save, too
  start_.ranks.end(others_may_end, summary.error ? what_failed(summary.error) : "");
}

// The signal that has interrupted the run does not end this wait too.
void Conduct::wait_for_trackers() {
  if (!trackers_) return;
  const int before = interrupted_ ? stop_signals_->seen() : 0;
  trackers_->finish(std::chrono::duration<double>(plan_.log.tracker_seconds), [&] { return stop_signals_->seen() != before; });
}

void Conduct::start_trackers() {
  if (plan_.log.trackers.empty()) return;
  trackers_.emplace(Trackers::Options{.names = plan_.log.trackers,
                                      .run_folder = start_.folder,
                                      .project = plan_.log.project.value_or(plan_.pipeline.name),
                                      .warn = [this](const std::string& warning) { warn(warning); },
                                      .note = [this](const std::string& line) { say(line); }});
}

// It does what is like "in 'generate', iteration 7".
engine::RankSign Conduct::sign() const {
  const engine::RunStatus status = run_->status();
  std::string nodes;
  for (const engine::RunStatus::Executor& executor : status.executors) {
    if (executor.working_on.empty()) continue;
    nodes += (nodes.empty() ? "in '" : " and '") + executor.working_on + "'";
  }
  return {.doing = (nodes.empty() ? "idle" : nodes) + ", iteration " + std::to_string(status.iterations_done),
          .iterations_done = status.iterations_done,
          .tokens_in_flight = status.tokens_in_flight,
          .resident_bytes = status.resident_bytes,
          .save_requests = save_requests_};
}

std::string Conduct::how_to_go_on() const { return "resume with: " + command_to_go_on(plan_, start_.folder); }

// It computes passes, and has neither iterations nor mail by which others would learn of it.
bool Conduct::an_assisting_rank_is_interrupted() const {
  const bool some_assist = plan_.pass_ranks() > 1 || plan_.sampling_ranks() > 1 || plan_.forward_ranks() > 0;
  if (!some_assist || !start_.ranks.leads()) return false;
  const auto is_told = [](const engine::RankSeen& rank) { return rank.last.interrupted; };
  return std::ranges::any_of(start_.ranks.seen(), is_told);
}

bool Conduct::another_rank_was_asked_to_save() {
  int64_t requests = 0;
  for (const engine::RankSeen& rank : start_.ranks.seen()) requests += rank.rank == 0 ? 0 : rank.last.save_requests;
  return requests > std::exchange(save_requests_of_others_, requests);
}

// Rank 0 saves for all; the others tell it with their signs. `launch` and schedulers signal all of them: that is one request.
void Conduct::forward_save_requests() {
  const bool asked_here = signals_.take_save_request();
  if (asked_here) ++save_requests_;
  if (!start_.ranks.leads()) return;
  const auto now = std::chrono::steady_clock::now();
  const bool asked_elsewhere = another_rank_was_asked_to_save() && now - asked_to_save_at_ > kOneRequest;
  if (!asked_here && !asked_elsewhere) return;
  asked_to_save_at_ = now;
  run_->save_now();
  say("asked to save: the first iteration is saved whose groups are not all drawn yet");
}

// Some times a second.
void Conduct::forward_signals() {
  forward_save_requests();
  if (interrupted_ || (stop_signals_->seen() == 0 && !an_assisting_rank_is_interrupted())) return;
  interrupted_ = true;
  run_->interrupt();
  const std::string where = start_.ranks.size() == 1 ? "" : " on all ranks";
  say("interrupted: finishing what is in flight" + where + ", at most " + human_seconds(plan_.runtime.grace_seconds) +
      "; again to stop at once");
}

void Conduct::say(const std::string& line) {
  if (display_) display_->say(line);
}

void Conduct::warn(const std::string& warning) {
  const std::string line = "warning: " + warning;
  if (display_) {
    display_->say(line, Ink::kYellow, stderr);
  } else {
    std::fprintf(stderr, "%s\n", printable(line, Lines::kKept).c_str());
  }
}

}  // namespace

int conduct_run(const LoadedPipeline& loaded, const RunStart& start) {
  keep_freed_memory();
  if (loaded.plan.assists(start.ranks.rank())) return conduct_assistance(loaded.plan, start);
  if (!start.ranks.leads()) return Conduct(loaded.plan, start).execute();
  start.ranks.tell(told_of(start));
  if (!start.from) write_pipeline(start.folder, loaded.plan);
  Conduct conduct(loaded.plan, start);
  note_inputs(start.folder, loaded.plan);
  if (start.from) {
    print_start(loaded.plan, *start.from);
    note_accepted(start.folder, start.from->manifest, loaded.plan, start.accept_changes);
    write_pipeline(start.folder, loaded.plan);
  }
  return conduct.execute();
}

}  // namespace sluice::cli
