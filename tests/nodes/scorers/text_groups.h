#pragma once

#include <string>
#include <utility>
#include <vector>

#include "nodes/columns/columns.h"
#include "tests/nodes/node_harness.h"

namespace sluice::nodes {

/// One response to one prompt with that label.
inline GroupOf labelled(std::string label, std::string response) {
  GroupOf group{Sample().value(columns::kResponse, std::move(response))};
  return group.value(columns::kLabel, std::move(label));
}

/// The score that a scorer gives one response.
template <class Scorer>
float score_of(const typename NodeHarness<Scorer>::Params& params, std::string response, std::string label = "unused") {
  return NodeHarness<Scorer>(params).run({labelled(std::move(label), std::move(response))})[columns::kScore][0];
}

}  // namespace sluice::nodes
