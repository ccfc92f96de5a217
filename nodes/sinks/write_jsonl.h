#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"

namespace sluice::nodes {

/// Appends one JSON object a sample to a file of the run folder, to look at what a model writes.
///
///   [nodes.samples]
///   type = "write_jsonl"
///   inputs = ["score"]
///   path = "samples.jsonl"                       # in the run folder, or below it: "texts/samples.jsonl"
///   fields = ["prompt", "response", "score"]     # any columns that nodes before it write
///   every = 10                                   # iterations
///
/// A line has iteration, group, sample (its place in the group) and then the fields; token and action columns are lists, a number
/// that is not finite is a string ("nan"). Where it has an action column, and actions are not the last tokens of a sample, its
/// action_tokens are their places among these, from 0.
///
/// Lines are written at each micro-batch, those of other ranks at the end of the iteration, rank by rank: lines of groups that
/// replace dropped ones are elsewhere than one process has them, which writes all by group. A run that goes on from a checkpoint
/// cuts the file to what it had then, so that no line is there twice. Throws UserError naming the path when the disk is full.
struct WriteJsonlParams {
  std::string path = "samples.jsonl";
  std::vector<std::string> fields{"prompt", "response", "score"};
  int64_t every = 1;
};

class WriteJsonl final : public engine::Node {
 public:
  static void describe(engine::Contract<WriteJsonlParams>& contract);

  WriteJsonl(const WriteJsonlParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;
  void save(engine::StateWriter& state) const override;

 private:
  WriteJsonlParams params_;
  engine::GatheredFile file_;
};

}  // namespace sluice::nodes
