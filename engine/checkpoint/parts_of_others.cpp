#include "engine/checkpoint/parts_of_others.h"

#include <memory>
#include <optional>
#include <utility>

#include "base/error.h"

namespace sluice::engine {

Reductions::Key key_of_part(const Plan& plan, const std::string& model, int64_t iterations, bool at_the_end) {
  return Reductions::Key::saved(iterations, static_cast<int>(&plan.model(model) - plan.models.data()), at_the_end);
}

// As that of a model after the last one.
Reductions::Key key_of_last_checkpoint(const Plan& plan, int64_t iterations) {
  return Reductions::Key::saved(iterations, static_cast<int>(plan.models.size()), /*at_the_end=*/true);
}

void PartsOfOthers::expect(const std::string& model, int64_t iterations, bool at_the_end) {
  if (plan_.owners() == 1) return;
  const Reductions::Key key = key_of_part(plan_, model, iterations, at_the_end);
  const auto done = std::make_shared<std::promise<void>>();
  {
    const std::lock_guard lock(mutex_);
    expected_.push_back({.model = model, .key = key, .done = done->get_future()});
  }
  reductions_.combine(key, {}, [done](const Contribution&) { done->set_value(); });
}

void PartsOfOthers::tell_of_last_save(int64_t iterations) {
  if (plan_.owners() == 1) return;
  Contribution decision{maximum_part("iterations", static_cast<double>(iterations))};
  reductions_.combine(Reductions::Key::last_save(), std::move(decision), [](const Contribution&) {});
}

void PartsOfOthers::tell_that_it_is_saved(int64_t iterations) {
  if (plan_.owners() == 1) return;
  const auto key = key_of_last_checkpoint(plan_, iterations);
  reductions_.combine(key, {maximum_part("iterations", static_cast<double>(iterations))}, [](const Contribution&) {});
}

// All of them, also when one has failed.
std::vector<PartsOfOthers::Expected> PartsOfOthers::waited_for() {
  std::vector<Expected> expected;
  {
    const std::lock_guard lock(mutex_);
    expected.swap(expected_);
  }
  for (const Expected& one : expected) one.done.wait();
  return expected;
}

void PartsOfOthers::await() {
  for (const Expected& one : waited_for()) check(one);
}

void PartsOfOthers::settle() {
  for (const Expected& one : waited_for()) reductions_.take_given(one.key);
}

void PartsOfOthers::forget() {
  const std::lock_guard lock(mutex_);
  expected_.clear();
}

void PartsOfOthers::check(const Expected& expected) {
  const std::vector<std::string> failures = reductions_.take_given(expected.key);
  if (std::ssize(failures) + 1 < plan_.owners())
    throw UserError("not all ranks have saved their part of model '" + expected.model + "'");
  for (size_t i = 0; i < failures.size(); ++i) {
    if (!failures[i].empty())
      throw UserError("rank " + std::to_string(i + 1) + " could not save its part of model '" + expected.model +
                      "': " + failures[i]);
  }
}

}  // namespace sluice::engine
