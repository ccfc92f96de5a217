#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/plan/plan.h"

namespace sluice::engine {

/// How much of its data a node looks at before a run.
enum class DataDepth { kBeginning, kAll };  // the first rows of each file, or everything that a run would check

/// What the function of Contract::data() may ask of the pipeline, and where it reports: a source looks at its rows, others at
/// texts of their parameters beside a tokenizer. Nothing is loaded: of models it knows the folders. What is wrong in a data file
/// it may also throw, as a UserError with its places. One thread.
class DataLook {
 public:
  /// All outlive it. `table`: that of the node.
  DataLook(const Plan& plan, const PlanNode& node, const Table& table, DataDepth depth, Problems& problems)
      : plan_(plan),
        node_(node),
        path_(plan.paths[static_cast<size_t>(node.path)]),
        table_(table),
        depth_(depth),
        problems_(problems) {}

  bool all() const { return depth_ == DataDepth::kAll; }

  /// How the path of the node takes part in the run: it only measures; a filter has dropped groups replaced.
  int64_t iterations() const { return plan_.pipeline.iterations; }
  bool measures() const { return path_.measures(); }
  bool refills() const { return path_.refill.has_value(); }

  /// Of the tokenizer and chat template of a model of the pipeline; empty: it has none.
  std::filesystem::path folder_of(const std::string& model) const;

  /// The model that samples on the path of the node; empty: none does.
  std::string sampled_model() const;

  /// What the node that does so takes; nothing: it does not say.
  std::optional<PromptLimit> prompt_limit() const { return plan_.prompt_limit(node_); }

  /// What nodes that read text columns of this one can use.
  std::vector<TextCheck> text_checks() const { return plan_.text_checks(node_); }

  /// At `key` of the node's table, or at its header where the key is not written.
  void error(std::string_view key, std::string message, std::string help = {});
  void warning(std::string_view key, std::string message, std::vector<std::string> notes = {}, std::string help = {});

 private:
  void add(const char* kind, Severity severity, std::string_view key, std::string message, std::vector<std::string> notes,
           std::string help);

  const Plan& plan_;
  const PlanNode& node_;
  const PlanPath& path_;
  const Table& table_;
  DataDepth depth_;
  Problems& problems_;
};

/// Lets every node of a plan whose contract says how look at its data. `spec` is what the plan was made of. Never throws for what
/// a user wrote; reads files.
Problems check_data(const Plan& plan, const PipelineSpec& spec, DataDepth depth);

}  // namespace sluice::engine
