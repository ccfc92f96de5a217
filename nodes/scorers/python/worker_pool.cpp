#include "nodes/scorers/python/worker_pool.h"

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/error.h"
#include "base/text/strings.h"

namespace sluice::nodes {
namespace {

using Clock = Subprocess::Clock;

constexpr size_t kNone = SIZE_MAX;

// The last words of a worker, on one line.
std::string last_words(const std::string& errors) {
  constexpr size_t kMost = 600;
  std::string_view text = trim(errors);
  if (text.empty()) return {};
  if (text.size() > kMost) text = text.substr(text.size() - kMost);
  std::string line;
  for (const std::string& part : split(text, '\n')) {
    if (!trim(part).empty()) line += (line.empty() ? "" : " | ") + std::string(trim(part));
  }
  return "; its last words: " + line;
}

std::string seconds_text(std::chrono::milliseconds time) { return human_seconds(std::chrono::duration<double>(time).count()); }

}  // namespace

struct WorkerPool::Worker {
  std::unique_ptr<Subprocess> process;  // null: to be started with the next request
  bool greeted = false;
  size_t request = kNone;  // that it works on, or waits for its greeting to be sent
  Clock::time_point deadline;

  bool busy() const { return process && (!greeted || request != kNone); }
};

WorkerPool::WorkerPool(WorkerPoolOptions options) : options_(std::move(options)) {
  SLUICE_CHECK(options_.workers > 0, "a pool needs workers");
  for (size_t w = 0; w < options_.workers; ++w) start(*workers_.emplace_back(std::make_unique<Worker>()));
  std::vector<WorkerReply> none;
  while (any_busy()) {
    exchange();
    for (const auto& worker : workers_) {
      if (worker->busy()) work(*worker, {}, none, nullptr);
    }
  }
}

WorkerPool::~WorkerPool() = default;

std::vector<WorkerReply> WorkerPool::ask(std::span<const std::string> requests, const TakeReply& take,
                                         const engine::OutsideWait& wait) {
  try {
    return replies_to(requests, take, wait);
  } catch (...) {
    for (const auto& worker : workers_) {
      if (!worker->busy()) continue;
      worker->process.reset();
      worker->request = kNone;
    }
    throw;
  }
}

std::vector<WorkerReply> WorkerPool::replies_to(std::span<const std::string> requests, const TakeReply& take,
                                                const engine::OutsideWait& wait) {
  std::vector<WorkerReply> replies(requests.size());
  for (size_t next = 0; next < requests.size() || any_busy();) {
    wait.go_on();
    for (const auto& worker : workers_) {
      if (worker->busy() || next == requests.size()) continue;
      // One that died while it had nothing to do is replaced; no request is to blame.
      Subprocess* const idle = worker->process.get();
      if (idle != nullptr) Subprocess::exchange({&idle, 1}, Clock::now());
      if (idle == nullptr || idle->ended()) start(*worker);
      worker->request = next++;
      if (worker->greeted) {
        worker->process->send(requests[worker->request] + "\n");
        worker->deadline = Clock::now() + options_.timeout;
      }
    }
    exchange();
    for (const auto& worker : workers_) {
      if (worker->busy()) work(*worker, requests, replies, take);
    }
  }
  return replies;
}

void WorkerPool::start(Worker& worker) {
  worker.process = std::make_unique<Subprocess>(options_.command);
  worker.greeted = false;
  worker.deadline = Clock::now() + options_.start_timeout;
}

// Looks at what came from a busy worker.
void WorkerPool::work(Worker& worker, std::span<const std::string> requests, std::vector<WorkerReply>& replies,
                      const TakeReply& take) {
  if (auto line = worker.process->take_line()) {
    if (worker.greeted) {
      try {
        take(worker.request, *line);
      } catch (const UserError& error) {
        return fail(worker, error.message() + " and was killed", replies);
      }
      replies[worker.request].line = std::move(*line);
      worker.request = kNone;
      return;
    }
    options_.greeted(*line);
    worker.greeted = true;
    if (worker.request == kNone) return;
    worker.process->send(requests[worker.request] + "\n");
    worker.deadline = Clock::now() + options_.timeout;
  } else if (worker.process->ended()) {
    fail(worker, worker.process->how_it_ended(), replies);
  } else if (worker.process->overflowed()) {
    fail(worker, "wrote a line of more than " + human_bytes(options_.command.most_output) + " and was killed", replies);
  } else if (Clock::now() >= worker.deadline) {
    const auto time = worker.greeted ? options_.timeout : options_.start_timeout;
    fail(worker, (worker.greeted ? "did not answer within " : "was not ready within ") + seconds_text(time) + " and was killed",
         replies);
  }
}

void WorkerPool::fail(Worker& worker, const std::string& what, std::vector<WorkerReply>& replies) {
  const std::string failure = what + last_words(worker.process->errors());
  worker.process.reset();
  if (worker.request == kNone) throw UserError("a worker " + failure);
  replies[worker.request].failure = failure;
  worker.request = kNone;
}

// Waits for: news of the workers that are busy. Ends at the earliest of their deadlines, or after half a second.
void WorkerPool::exchange() const {
  std::vector<Subprocess*> busy;
  Clock::time_point until = Clock::now() + engine::OutsideWait::kLook;
  for (const auto& worker : workers_) {
    if (!worker->busy()) continue;
    busy.push_back(worker->process.get());
    until = std::min(until, worker->deadline);
  }
  if (!busy.empty()) Subprocess::exchange(busy, until);
}

bool WorkerPool::any_busy() const {
  return std::ranges::any_of(workers_, [](const auto& worker) { return worker->busy(); });
}

}  // namespace sluice::nodes
