#include "engine/checkpoint/own_parts.h"

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"
#include "engine/checkpoint/checkpoints_place.h"
#include "engine/checkpoint/parts_of_others.h"

namespace sluice::engine {

OwnParts::OwnParts(Parts parts) : parts_(std::move(parts)) {
  thread_ = std::thread([this] { loop(); });
}

OwnParts::~OwnParts() {
  {
    const std::lock_guard lock(mutex_);
    ending_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void OwnParts::save(const std::string& model, int64_t iterations) {
  const Part part{.model = model, .iterations = iterations};
  try {
    if (parts_.plan.checkpoint_copy == CheckpointCopy::kNone) {
      take_snapshot(parts_.models, part.model, part.iterations, CheckpointCopy::kNone);
      ++held_up_;
      write(part);  // which tells of what fails, and does not throw
      --held_up_;
      return;
    }
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return prepared_; });
    }
    take_snapshot(parts_.models, part.model, part.iterations, CheckpointCopy::kMemory);
  } catch (const std::exception& error) {
    return tell(part, message_of(error));
  }
  {
    const std::lock_guard lock(mutex_);
    copied_.push_back(part);
  }
  changed_.notify_all();
}

void OwnParts::write(const Part& part) {
  std::string failure;
  try {
    const std::filesystem::path folder = unfinished_checkpoint(parts_.run_folder, parts_.plan.checkpoint, part.iterations);
    parts_.models.at(part.model).model->write_snapshot(folder, parts_.files);
  } catch (const std::exception& error) {
    failure = message_of(error);
  }
  tell(part, failure);
}

void OwnParts::tell(const Part& part, const std::string& failure) {
  const Reductions::Key key = key_of_part(parts_.plan, part.model, part.iterations, part.at_the_end);
  parts_.reductions.give(key, failure);
  parts_.reductions.combine(key, {}, [](const Contribution&) {});
}

void OwnParts::prepare() {
  prepare_copies(parts_.plan, parts_.models);
  const std::lock_guard lock(mutex_);
  prepared_ = true;
  changed_.notify_all();
}

// Waits for: a copy to write. Ends when: the destructor is called and nothing is left.
void OwnParts::loop() {
  prepare();
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return ending_ || !copied_.empty(); });
    if (copied_.empty()) return;
    const Part part = std::move(copied_.front());
    copied_.pop_front();
    writing_ = true;
    lock.unlock();
    write(part);
    lock.lock();
    writing_ = false;
    changed_.notify_all();
  }
}

// Waits for: all ranks to come to that key. Ends when: they have, or the run has failed: then it throws.
Contribution OwnParts::of_all(const Reductions::Key& key) const {
  const auto told = std::make_shared<std::promise<Contribution>>();
  parts_.reductions.combine(key, {}, [told](Contribution of_all) { told->set_value(std::move(of_all)); });
  Contribution of_all = told->get_future().get();
  if (of_all.empty()) throw UserError("rank 0 could not save the run at its end", "look at what rank 0 said last");
  return of_all;
}

void OwnParts::save_last() {
  const auto iterations = static_cast<int64_t>(of_all(Reductions::Key::last_save()).front().top);
  if (iterations == 0) return;
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return prepared_ && copied_.empty() && !writing_; });
  }
  for (const PlanModel& model : parts_.plan.models) {
    if (!model.usage.updated) continue;
    const Part part{.model = model.name, .iterations = iterations, .at_the_end = true};
    take_snapshot(parts_.models, part.model, part.iterations, CheckpointCopy::kNone);  // nothing changes any more
    write(part);
  }
  of_all(key_of_last_checkpoint(parts_.plan, iterations));
}

}  // namespace sluice::engine
