#pragma once

#include <ATen/core/Tensor.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "base/numbers/sum_tree.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/train/optimizer_step.h"
#include "tests/nodes/tiny_model.h"

/// Steps of a model that several ranks of this process train together, each with samples of its own.
namespace sluice::nodes::testing {

/// Samples of a step.
inline constexpr int kSlots = 12;

/// Gives `work` the log-probabilities of four actions of the sample of a slot. Its tokens are only here.
template <class Work>
void with_logprobs(const LanguageModel& model, int64_t iteration, int slot, const Work& work) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 6; ++i) tokens.push_back(2 + (7 * i + 13 * iteration + 5 * slot) % 90);
  engine::Layout layout;
  layout.add_sample(6, 4);
  work(policy_logprobs(model.forward(), all_samples({tokens}, layout), 1.0));
}

inline void add_gradient(const LanguageModel& model, int64_t iteration, int slot) {
  with_logprobs(model, iteration, slot, [](const at::Tensor& logprobs) { accumulate_gradient(logprobs.sum().neg(), "loss"); });
}

/// Those of all slots of a rank. `says_the_last`: which backward is.
inline void add_gradients(LanguageModel& model, SlotRange mine, int64_t iteration, bool says_the_last = false) {
  for (int slot = mine.first; slot < mine.last; ++slot) {
    trained(model).enter_slot(slot);
    if (says_the_last && slot + 1 == mine.last) trained(model).expect_last_backward();
    add_gradient(model, iteration, slot);
  }
  EXPECT_TRUE(model.add_up_slots());
}

/// The step of all ranks with the gradients that they have. Returns the norm that all of them see.
inline double step_together(const std::vector<std::shared_ptr<LanguageModel>>& models) {
  size_t done = 0;
  for (const auto& model : models) model->add_up_ranks([&] { ++done; });
  EXPECT_EQ(done, models.size());
  std::vector<double> norms;
  for (const auto& model : models) norms.push_back(step_optimizer(trained(*model), kSlots));
  EXPECT_EQ(norms, std::vector<double>(norms.size(), norms[0]));
  for (const auto& model : models) model->bring_weights([&] { ++done; });
  EXPECT_EQ(done, 2 * models.size());
  return norms[0];
}

}  // namespace sluice::nodes::testing
