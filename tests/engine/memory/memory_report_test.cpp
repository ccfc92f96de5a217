#include "engine/memory/memory_report.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <system_error>

#include "base/error.h"
#include "base/json/json.h"
#include "engine/memory/out_of_memory.h"

namespace sluice::engine::memory_report_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kMega = 1'000'000;

PlanMemory planned() {
  PlanMemory memory;
  memory.weights_bytes = 10 * kMega, memory.kv_bytes = 40 * kMega, memory.activation_bytes = 30 * kMega;
  return memory;
}

TEST(MemoryReport, CountsAsActivationsTheTensorsThatAreNothingElse) {
  const MemoryPeaks peaks{.program = 100 * kMega,
                          .resident = 170 * kMega,
                          .columns = 0,
                          .host = {.tensors = 75 * kMega,
                                   .pool_held = 40 * kMega,
                                   .pool_used = 25 * kMega,
                                   .models = {.weights = 15 * kMega, .copies = 4 * kMega, .gradients = 0, .optimizer = 0}}};
  const MemoryReport report = memory_report(planned(), peaks);
  std::vector<std::string> text;
  for (const MemoryClass& of : report.classes) text.push_back(of.name + " " + std::to_string(of.peak_bytes / kMega));
  EXPECT_THAT(text, ElementsAre("program 100", "weights 15", "checkpoint copy 4", "KV cache 25", "activations 20", "other 6"));
  EXPECT_THAT(memory_lines(report).back(), HasSubstr("planned   220 MB   peak   170 MB"));
}

// What is copied for checkpoints is on the host.
TEST(MemoryReport, OfADeviceStandsApart) {
  const MemoryPeaks peaks{
      .program = 100 * kMega,
      .resident = 170 * kMega,
      .devices = {{"cuda:0",
                   {.tensors = 75 * kMega,
                    .pool_held = 30 * kMega,
                    .pool_used = 25 * kMega,
                    .models = {.weights = 9 * kMega, .copies = 4 * kMega, .gradients = 8 * kMega, .optimizer = 16 * kMega}}}}};
  PlanDevice device{.name = "cuda:0", .memory = planned()};
  device.memory.machine_bytes = 160 * kMega;
  const MemoryReport report = memory_report_from(bytes_of(memory_report({}, peaks, {device})));
  std::vector<std::string> host;
  for (const MemoryClass& of : report.classes) host.push_back(of.name);
  EXPECT_THAT(host, ElementsAre("program", "checkpoint copy", "other"));
  ASSERT_EQ(report.devices.size(), 1u);
  std::vector<std::string> text;
  for (const MemoryClass& of : report.devices[0].classes) text.push_back(of.name + " " + std::to_string(of.peak_bytes / kMega));
  EXPECT_THAT(text, ElementsAre("weights 9", "gradients 8", "optimizer 16", "KV cache 25", "activations 12"));
  EXPECT_THAT(memory_lines(report).back(), HasSubstr("planned  80.0 MB   peak  75.0 MB of 160 MB"));
  const Json json = parse_json(memory_json(report), "memory.json");
  EXPECT_EQ(json.at("devices")[0].at("name"), "cuda:0");
  EXPECT_EQ(json.at("devices")[0].at("peak_bytes"), 75 * kMega);
}

TEST(MemoryReport, OfSeveralRanksHasARowEach) {
  const MemoryReport own = memory_report(planned(), {.resident = 170 * kMega, .host = {.pool_used = 25 * kMega}});
  const MemoryReport other = memory_report(planned(), {.resident = 180 * kMega, .host = {.pool_used = 35 * kMega}});
  EXPECT_FALSE(parse_json(memory_json(own), "memory.json").contains("ranks"));
  const Json json = parse_json(memory_json(own, {{1, memory_report_from(bytes_of(other))}}), "memory.json");
  EXPECT_EQ(json.at("peak_bytes"), 170 * kMega);
  ASSERT_EQ(json.at("ranks").size(), 2u);
  EXPECT_EQ(json.at("ranks")[0].at("classes").at("KV cache"), 25 * kMega);
  EXPECT_EQ(json.at("ranks")[1].at("rank"), 1);
  EXPECT_EQ(json.at("ranks")[1].at("peak_bytes"), 180 * kMega);
  EXPECT_EQ(json.at("ranks")[1].at("classes").at("KV cache"), 35 * kMega);
  EXPECT_THROW(memory_report_from("something else"), InternalError);
}

TEST(MemoryReport, NamesTheKeyOfTheLargestClass) {
  Plan plan;
  plan.memory = planned();
  const auto advice = [&] { return memory_advice(plan, memory_report(plan.memory, {})); };
  EXPECT_THAT(advice(), HasSubstr("tokens_in_flight"));
  plan.memory.activation_bytes = 50 * kMega;
  EXPECT_THAT(advice(), HasSubstr("pass_tokens"));
  plan.memory.weights_bytes = 60 * kMega;
  EXPECT_THAT(advice(), HasSubstr("dtype"));
  plan.memory.copy_bytes = 70 * kMega;
  EXPECT_THAT(advice(), HasSubstr("copy = \"none\" in [checkpoint]"));
}

TEST(OutOfMemory, IsToldFromOtherFailures) {
  EXPECT_TRUE(is_out_of_memory(std::bad_alloc()));
  EXPECT_TRUE(is_out_of_memory(std::runtime_error("[enforce fail] DefaultCPUAllocator: can't allocate memory")));
  EXPECT_TRUE(is_out_of_memory(std::system_error(std::make_error_code(std::errc::not_enough_memory))));
  EXPECT_TRUE(is_out_of_memory(std::runtime_error("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`")));
  EXPECT_FALSE(is_out_of_memory(std::runtime_error("a shape does not fit")));
}

}  // namespace
}  // namespace sluice::engine::memory_report_test
