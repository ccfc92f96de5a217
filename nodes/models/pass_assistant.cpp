#include "nodes/models/pass_assistant.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <exception>
#include <future>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/layers/gradient.h"
#include "nodes/models/passes/pass_wire.h"

namespace sluice::nodes {
namespace {

constexpr int kLeads = 0;  // the place of the rank that does

// Until it is done, which is called on some thread.
void wait_for(const std::function<void(const std::function<void()>& done)>& begin) {
  const auto done = std::make_shared<std::promise<void>>();
  begin([done] { done->set_value(); });
  done->get_future().wait();
}

std::string failure_of(const std::function<void()>& what) {
  try {
    what();
    return {};
  } catch (const std::exception& error) {
    return error.what();
  }
}

}  // namespace

void PassAssistant::assist_passes() {
  while (obey(PassCommand::from_text(passes_.receive(kLeads, 0).text))) {
  }
}

TrainedModel& PassAssistant::trained() const {
  SLUICE_CHECK(trained_ != nullptr, "model " + model_.name() + " is frozen, and is to be trained");
  return *trained_;
}

bool PassAssistant::obey(const PassCommand& command) {
  using Kind = PassCommand::Kind;
  switch (command.kind) {
    case Kind::kCompute:
      compute(command);
      return true;
    case Kind::kBackward:
      run_backward(command);
      return true;
    case Kind::kEnterSlot:
      trained().enter_own_slot(command.number);
      return true;
    case Kind::kEnterIteration:
      trained().enter_iteration(command.number);
      return true;
    case Kind::kLastBackward:
      trained().expect_last_backward();
      return true;
    case Kind::kAddUpSlots:
      trained().add_up_slots();
      return true;
    case Kind::kAddUpRanks:
      wait_for([this](const auto& done) { trained().add_up_ranks(done); });
      return true;
    case Kind::kBringWeights:
      wait_for([this](const auto& done) { trained().bring_weights(done); });
      return true;
    case Kind::kStep:
      trained().step(command.scale);
      return true;
    case Kind::kPublish:
      trained().publish_here(command.number);
      return true;
    case Kind::kTakeSnapshot:
      trained().take_snapshot(command.versions, command.copy);
      passes_.send(kLeads, {}, {});
      return true;
    case Kind::kPrepareSnapshot:
    case Kind::kWriteSnapshot:
      break;
    case Kind::kEnd:
      return false;
  }
  throw InternalError("a command about what is saved came among passes");
}

void PassAssistant::compute(const PassCommand& command) {
  const PassRequest request = receive_request(passes_, kLeads, command);
  const models::Transformer& model = model_.transformer();
  const models::Segment segment{.tokens = request.sample_offsets.back(),
                                .place = passes_.place(),
                                .ranks = passes_.size(),
                                .ring = passes_.ring(),
                                .expert_ranks = passes_.expert_ranks(),
                                .exchange = &exchange_};
  if (command.trains) outputs_.clear();  // what was not differentiated will not be
  if (command.trains && model.routers()) model.routers()->expect(command.counted);
  const at::AutoGradMode gradient(command.trains);
  std::vector<at::Tensor> outputs = outputs_of(model, request, segment);
  send_outputs(passes_, kLeads, outputs);
  if (command.trains) outputs_ = std::move(outputs);
}

void PassAssistant::run_backward(const PassCommand& command) {
  SLUICE_CHECK(command.has_gradient.size() == outputs_.size(), "a backward without its forward");
  int64_t bytes = 0;
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    gradients.push_back(command.has_gradient[i] ? at::empty(outputs_[i].sizes()) : at::Tensor());
    if (command.has_gradient[i]) bytes += static_cast<int64_t>(gradients.back().nbytes());
  }
  const engine::PassGroup::Columns come = passes_.receive(kLeads, bytes).columns;
  auto column = come.begin();
  for (const at::Tensor& gradient : gradients)
    if (gradient.defined()) copy_column(*column++, gradient);
  models::run_backward(std::exchange(outputs_, {}), gradients);
  if (model_.transformer().routers()) model_.transformer().routers()->take();  // the rank that leads tells of them
}

void assist_saves(engine::PassGroup& saves, TrainedModel& trained, const std::filesystem::path& source, FileSystem& files) {
  while (true) {
    const PassCommand command = PassCommand::from_text(saves.receive(kLeads, 0).text);
    if (command.kind == PassCommand::Kind::kEnd) return;
    saves.send(kLeads, failure_of([&] {
                 if (command.kind == PassCommand::Kind::kPrepareSnapshot) return trained.prepare_snapshot();
                 trained.write_snapshot(source, command.folder, files);
               }),
               {});
  }
}

}  // namespace sluice::nodes
