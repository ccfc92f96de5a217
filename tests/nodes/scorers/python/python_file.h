#pragma once

#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "nodes/columns/columns.h"
#include "nodes/scorers/python/python_scorer.h"
#include "tests/nodes/node_harness.h"
#include "tests/temporary_folder.h"

// Files of python_scorer, and groups to score with them.
namespace sluice::nodes::python_file {

/// One prompt with up to three responses.
inline GroupOf group(const std::string& prompt, const std::string& label, const std::vector<std::string>& responses) {
  const auto sample = [&](size_t i) { return Sample().value(columns::kResponse, responses.at(i)); };
  GroupOf made = responses.size() == 1   ? GroupOf{sample(0)}
                 : responses.size() == 2 ? GroupOf{sample(0), sample(1)}
                                         : GroupOf{sample(0), sample(1), sample(2)};
  return made.value(columns::kPrompt, prompt).value(columns::kLabel, label);
}

/// Two groups: 2+2 with right and wrong, 2+3 with wrong and right.
inline std::vector<GroupOf> sums() { return {group("2+2=", "4", {"4", "5"}), group("2+3=", "5", {"4", "5"})}; }

/// A scorer with a file of this text.
class Scorer {
 public:
  explicit Scorer(const std::string& source) { params.file = folder_.write("reward.py", source); }

  Output run(std::vector<GroupOf> groups, std::vector<size_t> groups_per_batch = {}) const {
    NodeHarness<PythonScorer> harness(params);
    harness.resources().node = "score";
    harness.resources().seed = 3;
    return harness.run(std::move(groups), std::move(groups_per_batch));
  }
  std::vector<float> scores() const { return run(sums())[columns::kScore]; }
  std::string error() const {
    return message_of<UserError>([&] { scores(); });
  }
  std::filesystem::path folder() const { return folder_.path(); }

  PythonScorerParams params;

 private:
  TemporaryFolder folder_;
};

}  // namespace sluice::nodes::python_file
