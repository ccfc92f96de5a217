#include "nodes/models/sampling/sampling_command.h"

#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sluice::nodes {
namespace {

using SamplingJson = nlohmann::json;

// Of a sequence, in front of its tokens and its blocks.
constexpr size_t kOfSequence = 4;

}  // namespace

std::string SamplingCommand::to_text() const {
  return SamplingJson{{"kind", static_cast<int>(kind)},
                      {"generation", generation},
                      {"precision", static_cast<int>(precision)},
                      {"block_size", block_size},
                      {"blocks", blocks},
                      {"from", from},
                      {"to", to},
                      {"version", version},
                      {"numbers", numbers}}
      .dump();
}

SamplingCommand SamplingCommand::from_text(const std::string& text) {
  try {
    const SamplingJson json = SamplingJson::parse(text);
    return {.kind = json.at("kind").get<Kind>(),
            .generation = json.at("generation"),
            .precision = json.at("precision").get<models::Precision>(),
            .block_size = json.at("block_size"),
            .blocks = json.at("blocks"),
            .from = json.at("from"),
            .to = json.at("to"),
            .version = json.at("version"),
            .numbers = json.at("numbers")};
  } catch (const SamplingJson::exception& error) {
    throw InternalError(std::string("a command between ranks that sample together cannot be read: ") + error.what());
  }
}

std::vector<int64_t> numbers_of(std::span<const models::DecodeSequence> sequences) {
  std::vector<int64_t> numbers;
  for (const models::DecodeSequence& sequence : sequences) {
    numbers.insert(numbers.end(),
                   {sequence.cached, sequence.wants_logits ? 1 : 0, std::ssize(sequence.tokens), std::ssize(sequence.blocks)});
    numbers.insert(numbers.end(), sequence.tokens.begin(), sequence.tokens.end());
    numbers.insert(numbers.end(), sequence.blocks.begin(), sequence.blocks.end());
  }
  return numbers;
}

std::vector<models::DecodeSequence> sequences_of(std::span<const int64_t> numbers, std::vector<int32_t>& blocks) {
  std::vector<models::DecodeSequence> sequences;
  blocks.clear();
  blocks.reserve(numbers.size());  // views into it stay
  const auto next = [&](size_t count) {
    SLUICE_CHECK(numbers.size() >= count, "a step without all of its sequences");
    const std::span<const int64_t> taken = numbers.first(count);
    numbers = numbers.subspan(count);
    return taken;
  };
  while (!numbers.empty()) {
    const std::span<const int64_t> head = next(kOfSequence);
    const std::span<const int64_t> tokens = next(static_cast<size_t>(head[2])), of_blocks = next(static_cast<size_t>(head[3]));
    const size_t first = blocks.size();
    for (const int64_t block : of_blocks) blocks.push_back(static_cast<int32_t>(block));
    sequences.push_back({.tokens = tokens,
                         .cached = head[0],
                         .blocks = std::span<const int32_t>(blocks).subspan(first),
                         .wants_logits = head[1] != 0});
  }
  return sequences;
}

}  // namespace sluice::nodes
