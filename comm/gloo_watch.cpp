#include "comm/gloo_watch.h"

#include <cstdio>
#include <cstdlib>
#include <list>
#include <mutex>
#include <string_view>
#include <thread>
#include <typeinfo>
#include <utility>

namespace sluice::comm {
namespace {

struct Watched {
  const GlooWatch* watch;
  GlooWatch::Failed failed;
  std::chrono::milliseconds to_end;
};

struct All {
  std::mutex mutex;  // guards what follows
  std::list<Watched> watched;
  std::terminate_handler before = nullptr;
  bool is_told = false;
};

// Lives as long as Gloo's threads may.
All& all() {
  static All& made = *new All;
  return made;
}

bool is_of_gloo(const std::exception_ptr& error) {
  if (!error) return false;
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& thrown) {
    return comm::is_of_gloo(thrown);
  } catch (...) {
    return false;
  }
}

// Waits for: the process to end by what the run has heard. Ends when: it has, or after `to_end` by itself.
[[noreturn]] void end_with(const std::string& text, std::chrono::milliseconds to_end) {
  std::this_thread::sleep_for(to_end);
  std::fprintf(stderr, "%s", text.c_str());
  std::fflush(stderr);
  std::_Exit(EXIT_FAILURE);
}

[[noreturn]] void on_terminate() {
  const std::exception_ptr error = std::current_exception();
  std::unique_lock lock(all().mutex);
  if (!is_of_gloo(error) || all().watched.empty()) {
    if (all().before != nullptr) all().before();
    std::abort();
  }
  while (std::exchange(all().is_told, true)) {  // by another thread, which ends the process
    lock.unlock();
    std::this_thread::sleep_for(std::chrono::hours(1));
    lock.lock();
  }
  const Watched watched = all().watched.front();
  lock.unlock();
  end_with(watched.failed(error), watched.to_end);
}

}  // namespace

bool is_of_gloo(const std::exception& error) { return std::string_view(typeid(error).name()).find("4gloo") != std::string::npos; }

GlooWatch::GlooWatch(Failed failed, std::chrono::milliseconds to_end) {
  const std::lock_guard lock(all().mutex);
  if (all().watched.empty()) all().before = std::set_terminate(on_terminate);
  all().watched.push_back({this, std::move(failed), to_end});
}

GlooWatch::~GlooWatch() {
  const std::lock_guard lock(all().mutex);
  all().watched.remove_if([this](const Watched& watched) { return watched.watch == this; });
  if (all().watched.empty()) std::set_terminate(all().before);
}

}  // namespace sluice::comm
