#include "engine/simulation/simulated_weights.h"

#include "engine/simulation/simulated_network.h"

namespace sluice::engine {

void SimulatedWeights::publish(const std::string& model, int64_t version) {
  ++models_[model].open[version].published;
  set_out(model);
}

void SimulatedWeights::receive(int rank, const std::string& model, int64_t version, std::function<void()> done) {
  models_[model].open[version].receivers.push_back({rank, std::move(done)});
  set_out(model);
}

void SimulatedWeights::set_out(const std::string& model) {
  Versions& versions = models_.at(model);
  if (versions.is_on_its_way || versions.open.empty()) return;
  const Version& oldest = versions.open.begin()->second;
  if (oldest.published < plan_.owners() || std::ssize(oldest.receivers) < plan_.samplers()) return;
  versions.is_on_its_way = true;
  std::vector<int> receivers;
  for (const Receiver& receiver : oldest.receivers) receivers.push_back(receiver.rank);
  const int64_t bytes = plan_.model(model).facts.wire_bytes;
  network_.carry_weights(receivers, bytes, [this, model] { arrive(model); });
}

void SimulatedWeights::arrive(const std::string& model) {
  Versions& versions = models_.at(model);
  const Version arrived = std::move(versions.open.extract(versions.open.begin()).mapped());
  versions.is_on_its_way = false;
  for (const Receiver& receiver : arrived.receivers) receiver.done();
  set_out(model);
}

}  // namespace sluice::engine
