#include "nodes/models/pass_word.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sluice::nodes {

using Json = nlohmann::json;

std::string PassWord::to_text() const {
  return Json{{"say", static_cast<int>(say)},
              {"offsets", request.sample_offsets},
              {"logprobs", request.logprobs},
              {"entropy", request.entropy},
              {"values", request.values},
              {"temperature", request.temperature},
              {"tokens", tokens},
              {"places", places},
              {"trains", trains},
              {"counted", counted},
              {"has_gradient", has_gradient},
              {"number", number},
              {"scale", scale},
              {"oldest", versions.oldest},
              {"newest", versions.newest},
              {"copy", static_cast<int>(copy)},
              {"folder", folder}}
      .dump();
}

PassWord PassWord::from_text(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    PassWord word{.say = json.at("say").get<Say>()};
    word.request.sample_offsets = json.at("offsets").get<std::vector<int64_t>>();
    word.request.logprobs = json.at("logprobs");
    word.request.entropy = json.at("entropy");
    word.request.values = json.at("values");
    word.request.temperature = json.at("temperature");
    word.tokens = json.at("tokens");
    word.places = json.at("places");
    word.trains = json.at("trains");
    word.counted = json.at("counted").get<std::vector<double>>();
    word.has_gradient = json.at("has_gradient").get<std::vector<bool>>();
    word.number = json.at("number");
    word.scale = json.at("scale");
    word.versions = {.oldest = json.at("oldest"), .newest = json.at("newest")};
    word.copy = json.at("copy").get<engine::CheckpointCopy>();
    word.folder = json.at("folder");
    return word;
  } catch (const Json::exception& error) {
    throw InternalError(std::string("a word between ranks that compute passes together cannot be read: ") + error.what());
  }
}

PassRequest part_of(const PassRequest& whole, const models::Segment& segment) {
  const auto* const places = whole.places.const_data_ptr<int64_t>();
  const auto* const end = places + whole.places.numel();
  const auto first = std::lower_bound(places, end, segment.begin()) - places;
  const auto count = std::lower_bound(places, end, segment.begin() + segment.size()) - places - first;
  PassRequest part = whole;
  part.tokens = whole.tokens.narrow(0, segment.begin(), segment.size());
  part.places = whole.places.narrow(0, first, count).sub(segment.begin());
  if (whole.logprobs) part.targets = whole.targets.narrow(0, first, count);
  return part;
}

}  // namespace sluice::nodes
