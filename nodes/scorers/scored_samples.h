#pragma once

#include <string>
#include <vector>

#include "engine/contract/columns/micro_batch.h"
#include "engine/contract/contract.h"
#include "nodes/columns/columns.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// What a scorer outside of this process is told of a micro-batch's samples. Prompts, labels and messages are empty where no node
/// writes them.
struct ScoredSamples {
  ScoredSamples(const ScoredTexts& texts, const engine::MicroBatch& batch) {
    const bool has_prompt = batch.has(columns::kPrompt.spec()), has_label = batch.has(columns::kLabel.spec());
    const bool has_messages = batch.has(columns::kMessages.spec());
    for (size_t i = 0; i < texts.size(); ++i) {
      const size_t group = texts.group_of(i);
      prompts.push_back(has_prompt ? batch.read(columns::kPrompt)[group] : std::string());
      labels.push_back(has_label ? batch.read(columns::kLabel)[group] : std::string());
      messages.push_back(has_messages ? batch.read(columns::kMessages)[group] : std::string());
      responses.push_back(texts.text(i));
      groups.push_back(batch.group_index(group));
      places.push_back(i > 0 && texts.group_of(i - 1) == group ? places.back() + 1 : 0);
    }
  }

  std::vector<std::string> prompts;    // [S]
  std::vector<std::string> responses;  // [S]
  std::vector<std::string> labels;     // [S]
  std::vector<std::string> messages;   // [S] the conversation that the prompt was written from, as JSON; empty: it was a text
  std::vector<int64_t> groups;         // [S] within the iteration
  std::vector<int64_t> places;         // [S] within the group
};

}  // namespace sluice::nodes
