#include "nodes/models/passes/pass_command.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace sluice::nodes {

using Json = nlohmann::json;

std::string PassCommand::to_text() const {
  return Json{{"kind", static_cast<int>(kind)},
              {"offsets", request.sample_offsets},
              {"logprobs", request.logprobs},
              {"entropy", request.entropy},
              {"values", request.values},
              {"temperature", request.temperature},
              {"tokens", tokens},
              {"places", places},
              {"route_bytes", route_bytes},
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

PassCommand PassCommand::from_text(const std::string& text) {
  try {
    const Json json = Json::parse(text);
    PassCommand command{.kind = json.at("kind").get<Kind>()};
    command.request.sample_offsets = json.at("offsets").get<std::vector<int64_t>>();
    command.request.logprobs = json.at("logprobs");
    command.request.entropy = json.at("entropy");
    command.request.values = json.at("values");
    command.request.temperature = json.at("temperature");
    command.tokens = json.at("tokens");
    command.places = json.at("places");
    command.route_bytes = json.at("route_bytes");
    command.trains = json.at("trains");
    command.counted = json.at("counted").get<std::vector<double>>();
    command.has_gradient = json.at("has_gradient").get<std::vector<bool>>();
    command.number = json.at("number");
    command.scale = json.at("scale");
    command.versions = {.oldest = json.at("oldest"), .newest = json.at("newest")};
    command.copy = json.at("copy").get<engine::CheckpointCopy>();
    command.folder = json.at("folder");
    return command;
  } catch (const Json::exception& error) {
    throw InternalError(std::string("a command between ranks that compute passes together cannot be read: ") + error.what());
  }
}

PassRequest part_of(const PassRequest& whole, const models::Segment& segment) {
  return tokens_of(whole, segment.begin(), segment.begin() + segment.size());
}

PassRequest tokens_of(const PassRequest& whole, int64_t begin, int64_t end) {
  const auto* const places = whole.places.const_data_ptr<int64_t>();
  const auto* const last = places + whole.places.numel();
  const auto first = std::lower_bound(places, last, begin) - places;
  const auto count = std::lower_bound(places, last, end) - places - first;
  PassRequest part = whole;
  part.tokens = whole.tokens.narrow(0, begin, end - begin);
  part.places = whole.places.narrow(0, first, count).sub(begin);
  if (whole.logprobs) part.targets = whole.targets.narrow(0, first, count);
  if (whole.routes.defined()) part.routes = whole.routes.narrow(0, begin, end - begin);
  return part;
}

}  // namespace sluice::nodes
