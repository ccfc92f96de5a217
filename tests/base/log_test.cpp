#include "base/log.h"

#include <gmock/gmock.h>

namespace sluice::log_test {
namespace {

// A model may have written it, by way of what a scorer says of a response.
TEST(Log, AWarningDoesNotSteerTheTerminal) {
  testing::internal::CaptureStderr();
  log_warning("r1: \x1b[2J is no number");
  EXPECT_THAT(testing::internal::GetCapturedStderr(), testing::HasSubstr("warning: r1: \\x1b[2J is no number\n"));
}

}  // namespace
}  // namespace sluice::log_test
