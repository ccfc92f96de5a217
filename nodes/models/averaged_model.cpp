#include "nodes/models/averaged_model.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/empty_like.h>

#include <utility>

#include "base/error.h"
#include "base/files/folder.h"
#include "models/devices/streams.h"
#include "models/train/moving_average.h"
#include "nodes/models/snapshot/snapshot_files.h"

namespace sluice::nodes {
namespace {

const models::FlatParameters& followed(const TrainedLanguageModel& of) { return of.trained().optimizer().parameters(); }

// With the buffer's numbers, and no gradient.
at::Tensor beginning(const TrainedLanguageModel& of) {
  const at::NoGradGuard no_gradient;
  return followed(of).weight_buffer().detach().clone();
}

// The other's transformer with other numbers where it is trained. Nothing is trained here, so nothing is computed again.
models::Transformer averaged(const TrainedLanguageModel& of, const at::Tensor& average) {
  const models::Transformer& live = of.forward().transformer();
  return {live.config(), live.weights().with(followed(of).views(average)), {.precision = live.compute().precision}};
}

int64_t bytes_of(const at::Tensor& average) { return static_cast<int64_t>(average.nbytes()); }

}  // namespace

AveragedLanguageModel::AveragedLanguageModel(const std::string& name, std::shared_ptr<const TrainedLanguageModel> of,
                                             const EmaParams& params)
    : AveragedLanguageModel(name, of, params, beginning(*of)) {}

AveragedLanguageModel::AveragedLanguageModel(const std::string& name, std::shared_ptr<const TrainedLanguageModel> of,
                                             const EmaParams& params, const at::Tensor& average)
    : LanguageModel(name, of->text().folder(), averaged(*of, average), {}, {.own = bytes_of(average)}),
      of_(std::move(of)),
      decay_(params.decay),
      every_steps_(params.every_steps),
      average_(average),
      copy_(average.numel()) {}

// A step whose gradients were not finite was none.
void AveragedLanguageModel::follow() {
  const int64_t before = std::exchange(steps_, of_->trained().optimizer().steps());
  if (before / every_steps_ == steps_ / every_steps_) return;
  models::move_average(average_, followed(*of_).weight_buffer().detach(), decay_);
  models::finish_work_on(average_.device());
}

models::NamedTensors AveragedLanguageModel::views(const at::Tensor& buffer) const { return followed(*of_).views(buffer); }

engine::ModelBytes AveragedLanguageModel::bytes() const {
  engine::ModelBytes bytes = LanguageModel::bytes();
  bytes.copies = copy_.bytes();
  return bytes;
}

void AveragedLanguageModel::take_snapshot(engine::VersionRange, engine::CheckpointCopy copy) {
  const bool copied = copy == engine::CheckpointCopy::kMemory;
  if (copied) copy_.copy({average_});
  taken_ = {.weights = views(copied ? copy_.tensor() : average_), .steps = steps_};
}

void AveragedLanguageModel::write_snapshot(const std::filesystem::path& folder, FileSystem& files) {
  SLUICE_CHECK(taken_.has_value(), "no snapshot was taken");
  const Taken taken = *std::exchange(taken_, std::nullopt);
  const models::SaveOptions options = of_->trained().save_options();
  const models::Transformer& live = forward().transformer();
  if (models::writes_folder(live, options)) {
    const models::Transformer of_then(live.config(), live.weights().with(taken.weights), live.compute());
    models::write_folder(of_then, text().folder(), folder / name(), options, files);
  }
  if (options.share.writer == 0) write_average(taken.weights, taken.steps, folder, name(), files);
  sync_folder(folder, files);
}

void AveragedLanguageModel::restore(const std::filesystem::path& folder, engine::VersionRange) {
  steps_ = read_average(views(average_), folder, name());
}

}  // namespace sluice::nodes
