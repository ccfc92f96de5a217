#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/contract/params/schedule_params.h"
#include "models/train/adamw.h"

namespace sluice::nodes {

enum class OptimizerType { kAdamW };
constexpr std::array<std::pair<OptimizerType, const char*>, 1> enum_names(OptimizerType) {
  return {{{OptimizerType::kAdamW, "adamw"}}};
}

/// Weights that are trained otherwise than the rest: models/train/weight_groups.h.
struct OptimizerGroupParams {
  std::string match;
  double learning_rate_scale = 1;
  std::optional<double> weight_decay;
};

/// AdamW (Loshchilov and Hutter 2019), stepped once for each optimizer step of the node that trains the model.
///
///   optimizer = { learning_rate = 1e-6, schedule = "cosine", warmup = 0.03, minimum = 0.1, weight_decay = 0.01 }
///   optimizer = { learning_rate = 1e-5, schedule = "wsd", warmup = 20, decay = 0.2 }
///   optimizer = { learning_rate = 1e-5, groups = [{ match = "lm_head.*", learning_rate_scale = 0.1 }] }
///
/// The learning rate follows the iteration, not the step: how many steps an iteration makes is known only when it was made (a
/// mini-batch without actions makes none), and other epochs or mini-batches leave the schedule as it is.
struct OptimizerParams : engine::ScheduleKeys {
  OptimizerType type = OptimizerType::kAdamW;
  double learning_rate = 0;  // the highest
  double minimum = 0;        // share of learning_rate: where it ends
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double weight_decay = 0;
  double clip_grad_norm = 1.0;
  std::vector<OptimizerGroupParams> groups;

  models::AdamWOptions options() const;
  engine::ValueSchedule learning_rate_of(int64_t iterations) const;

  /// The schedule depends on the iterations of the run.
  bool follows_iterations() const;
};

engine::ParamSet<OptimizerParams> optimizer_params();

/// Reports groups that change nothing, or match none of `names`, the weights that are trained.
void check_groups(const engine::Value& written, const OptimizerParams& params, const std::vector<std::string>& names,
                  Problems& problems);

/// What a preset has set and means nothing of the schedule that is `written`, such as the minimum of a constant one, gets its
/// default.
void forget_unused(OptimizerParams& params, const engine::Value& written);

/// Reports what is wrong with the schedule of the model `model`, whose optimizer is `written` so. `iterations`: 0, not known.
void check_schedule(const std::string& model, const engine::Value& written, const OptimizerParams& params, int64_t iterations,
                    Problems& problems);

}  // namespace sluice::nodes
