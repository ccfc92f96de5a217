#include "engine/observe/monitor.h"

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "base/error.h"
#include "base/files/file.h"
#include "base/text/strings.h"

namespace sluice::engine {
namespace {

constexpr auto kReportingPeriod = std::chrono::milliseconds(500);

// The most that counts between two looks. Where more has passed this thread did not run, so nobody can be blamed.
constexpr double kMostBetweenLooks = 1;

constexpr size_t kRanksTold = 16;

std::string counted(const RunStatus::Edge& edge) {
  return "edge " + edge.from + " -> " + edge.to + ": " + std::to_string(edge.micro_batches) +
         (edge.micro_batches == 1 ? " micro-batch" : " micro-batches") + ", " + plural(edge.tokens, "token") + ", " +
         std::to_string(edge.bytes) + " bytes";
}

std::string seen(const RankSeen& rank) {
  return "rank " + std::to_string(rank.rank) + " (host " + rank.host + ", pid " + std::to_string(rank.pid) +
         ") gave its last sign " + human_seconds(rank.silent_seconds) + " ago: " + rank.last.doing;
}

// All ranks live, or one would have been named as lost.
void tell_of_ranks(const RunStatus& status, bool somebody_works, Problem& problem) {
  const size_t told = std::min(status.ranks.size(), kRanksTold);
  for (size_t i = 0; i < told; ++i) problem.notes.push_back(seen(status.ranks[i]));
  if (told < status.ranks.size())
    problem.notes.push_back("and " + plural(static_cast<int64_t>(status.ranks.size() - told), "more rank"));
  if (status.ranks.size() > 1 && !somebody_works)
    problem.notes.push_back(
        "where no rank works, something between them was lost or damaged: look at the network between their hosts");
}

}  // namespace

Problem stall_problem(const RunStatus& status, double stall_seconds) {
  Problem problem;
  std::string who;
  for (const RunStatus::Executor& executor : status.executors) {
    if (executor.working_on.empty() && executor.queued == 0) continue;
    if (executor.working_on.empty()) {
      if (who.empty()) who = "executor '" + executor.name + "' hangs";
      problem.notes.push_back("executor " + executor.name + " has " + plural(executor.queued, "piece") +
                              " of work and does nothing");
    } else {
      who = "node '" + executor.working_on + "' hangs";
      problem.notes.push_back("executor " + executor.name + " has worked on '" + executor.working_on + "' for " +
                              human_seconds(executor.for_seconds));
    }
  }
  problem.message = (who.empty() ? "the run stalled" : who) + ": nothing has got on for " + real_text(stall_seconds) + " seconds";
  problem.notes.push_back("iteration " + std::to_string(std::max<int64_t>(0, status.sampling_iteration)) + ", " +
                          std::to_string(status.tokens_in_flight) + " of " + std::to_string(status.budget) + " tokens in flight");
  for (const RunStatus::Node& node : status.nodes) {
    if (!node.waits_for.empty()) problem.notes.push_back("'" + node.name + "' waits for " + node.waits_for);
  }
  for (const RunStatus::Edge& edge : status.edges) {
    if (edge.micro_batches > 0) problem.notes.push_back(counted(edge));
  }
  tell_of_ranks(status, !who.empty(), problem);
  problem.help = "if the work is only slow, raise stall_seconds in [runtime]; 0 waits for ever";
  return problem;
}

Monitor::Monitor(Options options, std::function<RunStatus()> status, std::function<int64_t()> progress,
                 std::function<void(Problem)> on_stall)
    : options_(std::move(options)), status_(std::move(status)), progress_(std::move(progress)), on_stall_(std::move(on_stall)) {
  thread_ = std::thread([this] { loop(); });
}

Monitor::~Monitor() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void Monitor::finish(RunStatus status) {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  wake_.notify_one();
  if (thread_.joinable()) thread_.join();
  write(status);
}

// Waits for: half a second to pass. Ends when: finish() or the destructor.
void Monitor::loop() {
  int64_t last_ns = options_.clock.now_ns();
  std::unique_lock lock(mutex_);
  while (!ending_) {
    lock.unlock();
    const int64_t now_ns = options_.clock.now_ns();
    try {
      write(status_());
    } catch (const std::exception&) {
      // A disk that is full, or memory that is, fails the run where it matters: in the metrics, a checkpoint, a node.
    }
    watch(std::min(static_cast<double>(now_ns - std::exchange(last_ns, now_ns)) * 1e-9, kMostBetweenLooks));
    lock.lock();
    wake_.wait_for(lock, kReportingPeriod, [this] { return ending_; });
  }
}

void Monitor::write(const RunStatus& status) {
  if (!options_.folder.path.empty() && options_.folder.is_ours)
    replace_file(options_.folder.path / kStatusFile, status_json(status), *options_.folder.files);
}

void Monitor::watch(double passed_seconds) {
  if (options_.stall_seconds <= 0 || told_) return;
  const int64_t progress = progress_();
  unchanged_seconds_ = progress == std::exchange(last_progress_, progress) ? unchanged_seconds_ + passed_seconds : 0;
  if (unchanged_seconds_ < options_.stall_seconds) return;
  told_ = true;
  on_stall_(stall_problem(status_(), options_.stall_seconds));
}

}  // namespace sluice::engine
