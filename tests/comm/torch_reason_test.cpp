#include "comm/torch_reason.h"

#include <c10/util/Exception.h>
#include <gtest/gtest.h>

#include <stdexcept>

#include "base/error.h"

namespace sluice::comm::torch_reason_test {
namespace {

TEST(TorchReason, IsOneSentenceWithoutPlacesAndStacks) {
  EXPECT_EQ(torch_reason(std::runtime_error("[/pytorch/gloo/pair.cc:534] Connection closed by peer")),
            "Connection closed by peer");
  EXPECT_EQ(torch_reason(std::runtime_error("[enforce fail at /pytorch/gloo/pair.cc:434] it != end. ")), "it != end.");
  EXPECT_EQ(torch_reason(std::runtime_error("[host]:80 is gone")), "[host]:80 is gone");
  EXPECT_EQ(torch_reason(UserError("the message", "the help")), "the message");
  try {
    TORCH_CHECK(false, "no such store");
  } catch (const c10::Error& error) {
    EXPECT_EQ(torch_reason(error), "no such store");
  }
}

}  // namespace
}  // namespace sluice::comm::torch_reason_test
