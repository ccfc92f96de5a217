#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "nodes/columns/columns.h"
#include "nodes/forward/logprobs.h"
#include "tests/nodes/tiny_model.h"

namespace sluice::nodes::testing {

/// The groups with reference_logprobs under the weights of `reference`.
inline std::vector<engine::Group> with_reference(std::vector<engine::Group> groups,
                                                 const std::shared_ptr<LanguageModel>& reference) {
  for (engine::Group& group : groups) {
    const auto logprobs =
        floats(run_node<Logprobs>(LogprobsParams{.model = "actor"}, {{"actor", reference}}, {group}), "reference_logprobs");
    std::ranges::copy(logprobs, group.write(columns::kReferenceLogprobs).begin());
  }
  return groups;
}

}  // namespace sluice::nodes::testing
