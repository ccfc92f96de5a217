#include "engine/schedule/state/failure.h"

#include <gtest/gtest.h>

#include <stdexcept>

namespace sluice::engine::failure_test {
namespace {

std::string note_of(const std::exception& thrown) {
  FailureSlot failure;
  try {
    throw std::runtime_error(thrown.what());
  } catch (...) {
    failure.capture(WorkPlace{.node = "mine", .iteration = 3, .first_group = 7, .last_group = 7});
  }
  try {
    failure.rethrow();
  } catch (const UserError& error) {
    EXPECT_EQ(error.message(), "node 'mine' failed in iteration 3 (group 7)");
    return error.problems().front().notes.front();
  }
  return {};
}

TEST(Failure, OfALibraryIsItsFirstLine) { EXPECT_EQ(note_of(std::runtime_error("no room\n  at a()\n")), "no room"); }

TEST(Failure, ThatSaysNothingIsCalledThat) { EXPECT_EQ(note_of(std::runtime_error("")), "an exception that says nothing"); }

}  // namespace
}  // namespace sluice::engine::failure_test
