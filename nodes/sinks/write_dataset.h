#pragma once

#include <array>
#include <string>
#include <utility>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// What the rows of a data set are.
enum class DatasetForm {
  kExamples,  // each sample that stays, for jsonl_examples
  kPairs,     // of each group the best and the worst of them, for preference_pairs
};

constexpr auto enum_names(DatasetForm) {
  return std::array{std::pair{DatasetForm::kExamples, "examples"}, std::pair{DatasetForm::kPairs, "pairs"}};
}

/// Appends what was sampled to a file of the run folder, in the form that is learned from: best of n, rejection sampling, pairs.
///
///   [nodes.dataset]
///   type = "write_dataset"
///   inputs = ["best"]          # a mask_samples: best_of, least_score, truncated
///   path = "dataset.jsonl"     # in the run folder, or below it
///   form = "examples"          # "pairs": the best and the worst of each group
///
/// Rows, which jsonl_examples and preference_pairs read without further keys:
///
///   {"prompt": ..., "completion": ..., "score": 1.0}
///   {"prompt": ..., "chosen": ..., "rejected": ..., "chosen_score": 1.0, "rejected_score": 0.0, "margin": 1.0}
///
/// A prompt that was written from messages is those messages, and then the responses are messages of the assistant. A sample
/// without an action that the mask keeps is left out; of equal scores the earlier sample counts as the better and as the worse.
/// A group without two different scores has no pair.
///
/// Reads prompt[G], response[S], score[S] (with form = "examples" if some node writes it), and messages[G] and mask[A] if there
/// are any. Lines are written and cut as those of write_jsonl are. Throws UserError naming the path when the disk is full.
struct WriteDatasetParams {
  std::string path = "dataset.jsonl";
  DatasetForm form = DatasetForm::kExamples;
};

class WriteDataset final : public engine::Node {
 public:
  static void describe(engine::Contract<WriteDatasetParams>& contract);

  WriteDataset(const WriteDatasetParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;
  void save(engine::StateWriter& state) const override;

 private:
  const WriteDatasetParams params_;
  engine::GatheredFile file_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
