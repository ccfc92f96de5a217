#include "nodes/models/pass_assistant.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty.h>

#include <exception>
#include <future>
#include <string>
#include <utility>

#include "base/error.h"
#include "models/layers/gradient.h"

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
  while (obey(PassWord::from_text(passes_.receive(kLeads, 0).text))) {
  }
}

TrainedModel& PassAssistant::trained() const {
  SLUICE_CHECK(trained_ != nullptr, "model " + model_.name() + " is frozen, and is to be trained");
  return *trained_;
}

bool PassAssistant::obey(const PassWord& word) {
  using Say = PassWord::Say;
  switch (word.say) {
    case Say::kCompute:
      compute(word);
      return true;
    case Say::kBackward:
      run_backward(word);
      return true;
    case Say::kEnterSlot:
      trained().enter_own_slot(word.number);
      return true;
    case Say::kEnterIteration:
      trained().enter_iteration(word.number);
      return true;
    case Say::kLastBackward:
      trained().expect_last_backward();
      return true;
    case Say::kAddUpSlots:
      trained().add_up_slots();
      return true;
    case Say::kAddUpRanks:
      wait_for([this](const auto& done) { trained().add_up_ranks(done); });
      return true;
    case Say::kBringWeights:
      wait_for([this](const auto& done) { trained().bring_weights(done); });
      return true;
    case Say::kStep:
      trained().step(word.scale);
      return true;
    case Say::kTakeSnapshot:
      trained().take_snapshot(word.versions, word.copy);
      passes_.send(kLeads, {}, {});
      return true;
    case Say::kPrepareSnapshot:
    case Say::kWriteSnapshot:
      break;
    case Say::kEnd:
      return false;
  }
  throw InternalError("a word about what is saved came among passes");
}

void PassAssistant::compute(const PassWord& word) {
  PassRequest request = word.request;
  const auto numbers = [](int64_t count) { return at::empty({count}, at::kLong); };
  request.tokens = numbers(word.tokens), request.places = numbers(word.places), request.targets = numbers(word.places);
  const auto bytes = static_cast<int64_t>(sizeof(int64_t)) * (word.tokens + 2 * word.places);
  const engine::PassGroup::Columns come = passes_.receive(kLeads, bytes).columns;
  SLUICE_CHECK(come.size() == (request.logprobs ? 3U : 2U), "a segment without its tokens");
  copy_column(come[0], request.tokens);
  copy_column(come[1], request.places);
  if (request.logprobs) copy_column(come[2], request.targets);

  const models::Transformer& model = model_.transformer();
  const models::Segment segment{
      .tokens = request.sample_offsets.back(), .place = passes_.place(), .ranks = passes_.size(), .exchange = &exchange_};
  if (word.trains) outputs_.clear();  // what was not differentiated will not be
  if (word.trains && model.routers()) model.routers()->expect(word.counted);
  const at::AutoGradMode gradient(word.trains);
  std::vector<at::Tensor> outputs = outputs_of(model, request, segment);
  engine::PassGroup::Columns columns;
  for (const at::Tensor& output : outputs) columns.push_back(column_of(output.detach()));
  passes_.send(kLeads, {}, std::move(columns));
  if (word.trains) outputs_ = std::move(outputs);
}

void PassAssistant::run_backward(const PassWord& word) {
  SLUICE_CHECK(word.has_gradient.size() == outputs_.size(), "a backward without its forward");
  int64_t bytes = 0;
  std::vector<at::Tensor> gradients;
  for (size_t i = 0; i < outputs_.size(); ++i) {
    gradients.push_back(word.has_gradient[i] ? at::empty(outputs_[i].sizes()) : at::Tensor());
    if (word.has_gradient[i]) bytes += static_cast<int64_t>(gradients.back().nbytes());
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
    const PassWord word = PassWord::from_text(saves.receive(kLeads, 0).text);
    if (word.say == PassWord::Say::kEnd) return;
    saves.send(kLeads, failure_of([&] {
                 if (word.say == PassWord::Say::kPrepareSnapshot) return trained.prepare_snapshot();
                 trained.write_snapshot(source, word.folder, files);
               }),
               {});
  }
}

}  // namespace sluice::nodes
