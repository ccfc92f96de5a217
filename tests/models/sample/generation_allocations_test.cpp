#include <gtest/gtest.h>

#include "models/kernels/parallel.h"
#include "models/sample/generation.h"
#include "tests/models/allocation_counter.h"
#include "tests/models/dense_reference.h"

namespace sluice::models::generation_allocations_test {
namespace {

// Two groups decode side by side; the first counted steps fill blocks and take new ones.
void expect_no_allocations(const ModelConfig& config) {
  const PackedWeights weights(reference::random_weights(config, 0.15));
  const int64_t had = loop_threads();
  for (const int threads : {1, 2}) {
    set_loop_threads(threads);
    for (const KvAdmission admission : {KvAdmission::kWorstCase, KvAdmission::kOnDemand}) {
      GenerationEngine engine(config, {.sampling = {.temperature = 0.8, .top_k = 10, .top_p = 0.9}},
                              {.max_running_samples = 16, .kv_block_size = 16, .kv_blocks = 200, .admission = admission});
      for (uint64_t id = 0; id < 12; ++id) {
        const std::vector<int64_t> prompt(20 + id / 6 * 7, static_cast<int64_t>(id / 6));
        engine.submit({.id = id, .prompt = prompt, .max_new_tokens = 60, .stream = RandomStream(3, id)});
      }
      for (int i = 0; i < 3; ++i) engine.step(weights);
      for (int i = 0; i < 40; ++i) EXPECT_EQ(allocations_in([&] { engine.step(weights); }), 0) << "step " << i;
      EXPECT_EQ(engine.running(), 12);
    }
  }
  set_loop_threads(had);
}

TEST(GenerationAllocations, AStepInWhichNobodyStartsOrEndsAllocatesNothing) { expect_no_allocations(reference::small_config()); }

// Each step has another number of tokens for each of them.
TEST(GenerationAllocations, NorDoesAStepThroughExperts) {
  ModelConfig config = reference::small_config();
  config.experts = {.count = 9, .per_token = 2, .size = 20, .shared_size = 16};
  expect_no_allocations(config);
  config.experts.dense_layers = {0};
  expect_no_allocations(config);
}

}  // namespace
}  // namespace sluice::models::generation_allocations_test
