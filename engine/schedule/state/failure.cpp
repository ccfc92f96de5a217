#include "engine/schedule/state/failure.h"

#include <string_view>
#include <utility>

#include "base/text/strings.h"
#include "engine/memory/out_of_memory.h"

namespace sluice::engine {
namespace {

std::string text_of(const WorkPlace& place) {
  std::string text = "node '" + place.node + "' failed";
  text += place.micro_batch >= 0 ? " on micro-batch " + std::to_string(place.micro_batch) + " of iteration " : " in iteration ";
  text += std::to_string(place.iteration);
  if (place.first_group >= 0) {
    const bool one = place.first_group == place.last_group;
    text += one ? " (group " + std::to_string(place.first_group) + ")"
                : " (groups " + std::to_string(place.first_group) + " to " + std::to_string(place.last_group) + ")";
  }
  return text;
}

// What a user can mend keeps its remedy; libraries' exceptions are shown by their first line, without the stack they append.
std::exception_ptr with_place(const std::string& where) {
  try {
    throw;
  } catch (const UserError& error) {
    Problem problem{.where = {}, .message = where, .caret = {}, .notes = {}, .help = {}};
    for (const Problem& cause : error.problems()) {
      problem.notes.push_back(cause.message);
      problem.notes.insert(problem.notes.end(), cause.notes.begin(), cause.notes.end());
      if (problem.help.empty()) problem.help = cause.help;
    }
    return std::make_exception_ptr(UserError(std::move(problem)));
  } catch (const InternalError& error) {
    return std::make_exception_ptr(InternalError(where + ": " + error.what()));
  } catch (const std::exception& error) {
    const std::string_view line = first_line(error.what());
    const std::string said(line.empty() ? "an exception that says nothing" : line);
    Problem problem{.where = {}, .message = where, .caret = {}, .notes = {said}, .help = {}};
    if (!is_out_of_memory(error)) return std::make_exception_ptr(UserError(std::move(problem)));
    problem.notes = {"out of memory: " + said};
    return std::make_exception_ptr(OutOfMemory(std::move(problem)));
  } catch (...) {
    return std::make_exception_ptr(UserError(Problem{.where = {},
                                                     .message = where,
                                                     .caret = {},
                                                     .notes = {"something that is no std::exception was thrown"},
                                                     .help = "this is a bug of the node's type"}));
  }
}

}  // namespace

void FirstFailure::keep(std::exception_ptr error) {
  const std::lock_guard lock(mutex_);
  if (error_) return;
  error_ = std::move(error);
  failed_ = true;
}

std::exception_ptr FirstFailure::error() const {
  const std::lock_guard lock(mutex_);
  return error_;
}

void FirstFailure::rethrow() const {
  if (const std::exception_ptr error = this->error()) std::rethrow_exception(error);
}

// In blocks of a size that the allocator takes from its heap, where freed ones can be had again.
FailureSlot::FailureSlot() {
  constexpr size_t kBlocks = 32, kBytes = 32 << 10;
  for (size_t block = 0; block < kBlocks; ++block) reserve_.push_back(std::make_unique<std::byte[]>(kBytes));
}

void FailureSlot::release_reserve() {
  const std::lock_guard lock(mutex_);
  reserve_.clear();
}

void FailureSlot::capture(const WorkPlace& place) {
  release_reserve();
  keep(with_place(text_of(place)));
}

void FailureSlot::capture(const std::string& what) {
  release_reserve();
  keep(with_place(what + " failed"));
}

}  // namespace sluice::engine
