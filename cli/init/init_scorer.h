#pragma once

#include <string>
#include <vector>

namespace sluice::cli {

/// The scorer that fits the answers of a data file.
struct InitScorer {
  std::string type;    // "numeric_match"; empty: none
  std::string more;    // keys as TOML, with a comma in front
  std::string suffix;  // what tells a model that chats how to answer; empty: nothing
  std::string why;
};

/// All `answers` fit it: numbers, letters of choices, or texts.
InitScorer scorer_for(const std::vector<std::string>& answers);

}  // namespace sluice::cli
