#include "nodes/models/snapshot/model_snapshot.h"

#include <ATen/ops/ones.h>
#include <gmock/gmock.h>

#include <cerrno>
#include <condition_variable>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <ostream>
#include <thread>

#include "base/error.h"
#include "base/files/file.h"
#include "base/files/folder.h"
#include "models/folder/folder.h"
#include "models/folder/safetensors.h"
#include "models/folder/safetensors_writer.h"
#include "nodes/forward/forward.h"
#include "nodes/forward/ragged.h"
#include "nodes/train/optimizer_step.h"
#include "tests/files/faulty_file_system.h"
#include "tests/files/forwarding_file_system.h"
#include "tests/nodes/sampling.h"
#include "tests/nodes/tiny_model.h"
#include "tests/temporary_folder.h"

namespace sluice::nodes::model_snapshot_test {
namespace {

namespace fs = std::filesystem;
using engine::CheckpointCopy;
using testing::all_weights;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::publish;
using testing::tiny_model;
using testing::TinyFolder;
using testing::TinyOptions;
using testing::trained;

constexpr int64_t kLag = 2;

struct Variant {
  std::string name;
  TinyOptions options;

  friend std::ostream& operator<<(std::ostream& out, const Variant& variant) { return out << variant.name; }
};

std::vector<Variant> variants() {
  const TinyOptions plain{.optimizer = models::AdamWOptions{.learning_rate = 1e-2, .weight_decay = 0.1, .clip_grad_norm = 1},
                          .readable_versions = kLag + 1,
                          .saved_versions = kLag};
  std::vector<Variant> all{{"whole", plain}};
  const auto add = [&](const std::string& name, auto change) {
    all.push_back({name, plain});
    change(all.back().options);
  };
  add("lora", [](TinyOptions& options) { options.trained.lora = LoraParams{.rank = 4, .targets = {"q_proj", "down_proj"}}; });
  add("frozen_embedding", [](TinyOptions& options) { options.trained.freeze = {"model.embed_tokens.*"}; });
  add("one_trunk", [](TinyOptions& options) { options.both_heads = true; });
  add("critic", [](TinyOptions& options) {
    options.value_head = true;
    options.saved_versions = 0;
  });
  add("bfloat16", [](TinyOptions& options) { options.precision = models::Precision::kBfloat16; });
  add("lora_bfloat16", [](TinyOptions& options) {
    options.trained.lora = LoraParams{.rank = 4};
    options.precision = models::Precision::kBfloat16;
  });
  add("frozen_layer_bfloat16", [](TinyOptions& options) {
    options.trained.freeze = {"model.layers.0.*"};
    options.precision = models::Precision::kBfloat16;
  });
  return all;
}

// One optimizer step on samples that depend on the iteration.
void train(LanguageModel& model, int64_t iteration) {
  std::vector<int64_t> tokens;
  for (int64_t i = 0; i < 11; ++i) tokens.push_back(2 + (7 * i + 13 * iteration) % 90);
  engine::Layout layout;
  layout.add_sample(6, 3);
  layout.add_sample(5, 4);
  const RaggedSamples samples = all_samples({tokens}, layout);
  const models::Weights& weights = model.forward().transformer().weights();
  at::Tensor loss;
  if (weights.head.defined() && weights.value_head.defined()) {
    const PolicyAndValues outputs = policy_and_values(model.forward(), samples, 1.0, /*with_entropy=*/false);
    loss = outputs.values.square().sum().sub(outputs.policy.logprobs.sum());
  } else if (weights.head.defined()) {
    loss = policy_logprobs(model.forward(), samples, 1.0).sum().neg();
  } else {
    loss = critic_values(model.forward(), samples).square().sum();
  }
  accumulate_gradient(loss, "loss");
  step_optimizer(trained(model), 7);
}

engine::VersionRange versions_behind(int64_t iterations, const LanguageModel& model, int64_t lag) {
  return {.oldest = model.forward().transformer().weights().head.defined() ? std::max<int64_t>(0, iterations - lag) : iterations,
          .newest = iterations};
}

// Iterations [begin, end): each trains and publishes.
void iterate(LanguageModel& model, int64_t begin, int64_t end) {
  for (int64_t i = begin; i < end; ++i) {
    train(model, i);
    publish(model, i + 1);
  }
}

// Iterations [0, end), and the checkpoint after the last, taken where the engine takes it.
void iterate_and_save(LanguageModel& model, int64_t end, const fs::path& folder, FileSystem& files = unsynced_disk()) {
  iterate(model, 0, end - 1);
  train(model, end - 1);
  model.take_snapshot(versions_behind(end, model, kLag), CheckpointCopy::kMemory);
  publish(model, end);
  model.write_snapshot(folder, files);
}

// All that training changes.
struct Trained {
  std::vector<float> weights;
  at::Tensor first_moments, second_moments;
  int64_t steps = 0;

  explicit Trained(LanguageModel& model)
      : weights(all_weights(model)),
        first_moments(trained(model).optimizer().first_moments().clone()),
        second_moments(trained(model).optimizer().second_moments().clone()),
        steps(trained(model).optimizer().steps()) {}

  bool operator==(const Trained& other) const {
    return weights == other.weights && first_moments.equal(other.first_moments) && second_moments.equal(other.second_moments) &&
           steps == other.steps;
  }
};

// Likely and unlikely tokens that a version samples.
std::pair<std::vector<int64_t>, std::vector<float>> sampled(const std::shared_ptr<LanguageModel>& model, int64_t version) {
  testing::Sampling sampling(testing::params_with(2, 6), model);
  const auto groups = sampling.run({"ab", "12+3"}, {.index = version, .policy_version = version});
  return {testing::tokens_of(groups), testing::logprobs_of(groups)};
}

std::map<std::string, std::string> contents(const fs::path& folder) {
  std::map<std::string, std::string> files;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) {
    if (entry.is_regular_file()) files[entry.path().lexically_relative(folder).string()] = read_file(entry.path());
  }
  return files;
}

class Snapshots : public ::testing::TestWithParam<Variant> {
 protected:
  std::shared_ptr<LanguageModel> fresh() const { return tiny_model(model_.path(), GetParam().options); }

  // A model that has another history, which restoring must make forget.
  std::shared_ptr<LanguageModel> other() const {
    const auto model = fresh();
    for (int64_t i = 50; i < 53; ++i) train(*model, i);
    publish(*model, 1);
    return model;
  }

  const TinyFolder model_;
  const TemporaryFolder folder_;
};

TEST_P(Snapshots, GoOnBitForBit) {
  const auto whole = fresh();
  iterate_and_save(*whole, 4, folder_.path());
  const Trained at_checkpoint(*whole);
  const auto again = other();
  again->restore(folder_.path(), versions_behind(4, *whole, kLag));
  EXPECT_EQ(Trained(*again), at_checkpoint);
  iterate(*whole, 4, 6);
  iterate(*again, 4, 6);
  EXPECT_FALSE(Trained(*whole) == at_checkpoint);
  EXPECT_EQ(Trained(*again), Trained(*whole));
}

TEST_P(Snapshots, OlderVersionsAreSampledFromAsBefore) {
  const auto whole = fresh();
  if (!whole->forward().transformer().weights().head.defined()) return;  // nobody samples from a critic
  iterate_and_save(*whole, 4, folder_.path());
  const auto again = other();
  again->restore(folder_.path(), {.oldest = 2, .newest = 4});
  for (const int64_t version : {2, 3, 4}) EXPECT_EQ(sampled(again, version), sampled(whole, version)) << version;
  EXPECT_NE(sampled(again, 2), sampled(again, 4));
}

TEST_P(Snapshots, ARestoredModelIsSavedAsBefore) {
  const auto whole = fresh();
  iterate_and_save(*whole, 4, folder_.path() / "4");
  const auto again = other();
  again->restore(folder_.path() / "4", versions_behind(4, *whole, kLag));
  for (const auto& model : {whole, again}) {
    train(*model, 4);
    model->take_snapshot(versions_behind(5, *model, kLag), CheckpointCopy::kMemory);
    model->write_snapshot(folder_.path() / (model == whole ? "whole" : "again"), unsynced_disk());
  }
  EXPECT_EQ(contents(folder_.path() / "again"), contents(folder_.path() / "whole"));
}

TEST_P(Snapshots, HaveAFolderThatOthersLoad) {
  const auto model = fresh();
  iterate_and_save(*model, 2, folder_.path());
  const auto& weights = model->forward().transformer().weights();
  const models::Head head = !weights.head.defined()        ? models::Head::kValue
                            : weights.value_head.defined() ? models::Head::kPolicyAndValue
                                                           : models::Head::kLanguageModel;
  const auto loaded = models::load_transformer(folder_.path() / model->name(), {.head = head});
  for (const auto& [name, tensor] : loaded.weights().named()) {
    const auto live = weights.named();
    const auto same = std::ranges::find(live, name, &std::pair<std::string, at::Tensor>::first);
    ASSERT_NE(same, live.end()) << name;
    const bool adapted = GetParam().options.trained.lora && name.find("_proj") != std::string::npos;
    EXPECT_TRUE(adapted || tensor.equal(same->second)) << name;
  }
}

// Without a copy nothing is allocated, and the bytes are those of one.
TEST_P(Snapshots, AreTheSameWithoutACopy) {
  const auto copied = fresh(), live = fresh();
  iterate_and_save(*copied, 4, folder_.path() / "copied");
  iterate(*live, 0, 3);
  train(*live, 3);
  const int64_t before = live->bytes().copies;
  live->take_snapshot(versions_behind(4, *live, kLag), CheckpointCopy::kNone);
  live->write_snapshot(folder_.path() / "live", unsynced_disk());
  EXPECT_EQ(live->bytes().copies, before);
  EXPECT_EQ(contents(folder_.path() / "live"), contents(folder_.path() / "copied"));

  // Nothing of it stays lent, or is shared with what comes later.
  publish(*live, 4);
  iterate(*copied, 4, 6);
  iterate(*live, 4, 6);
  EXPECT_EQ(Trained(*live), Trained(*copied));
  EXPECT_EQ(live->bytes().copies, before);
}

// Waits with the first operation until it is let through.
class Gate final : public ForwardingFileSystem {
 public:
  Gate() : ForwardingFileSystem(unsynced_disk()) {}

  int make_folder(const fs::path& path) override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return open_; });
    return ForwardingFileSystem::make_folder(path);
  }

  void let_through() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

TEST_P(Snapshots, AreOfTheirMomentWhileTrainingGoesOn) {
  const auto undisturbed = fresh(), model = fresh();
  fs::create_directories(folder_.path() / "during");
  iterate_and_save(*undisturbed, 3, folder_.path() / "alone");

  iterate(*model, 0, 2);
  train(*model, 2);
  model->take_snapshot(versions_behind(3, *model, kLag), CheckpointCopy::kMemory);
  Gate gate;
  std::thread writer([&] { model->write_snapshot(folder_.path() / "during", gate); });
  publish(*model, 3);
  iterate(*model, 3, 8);  // all versions of the snapshot are published over
  gate.let_through();
  iterate(*model, 8, 12);
  writer.join();
  EXPECT_EQ(contents(folder_.path() / "during"), contents(folder_.path() / "alone"));

  iterate(*undisturbed, 3, 12);
  EXPECT_EQ(Trained(*model), Trained(*undisturbed));
}

// One older version more is kept than a snapshot wants, and those of a snapshot that is being written are there beside the kept
// ones.
TEST_P(Snapshots, TakeTheMemoryOfTheirCopiesAndNoMore) {
  const auto model = fresh();
  const int64_t of_copy = trained(*model).optimizer().parameters().size() * 4, versions = GetParam().options.saved_versions;
  const int64_t kept = versions > 0 ? versions + 1 : 0;
  for (int64_t version = 1; version <= kLag; ++version) publish(*model, version);  // each is packed for sampling, too
  const engine::ModelBytes before = model->bytes();
  for (int64_t end = kLag + 1; end < 9; ++end) {
    train(*model, end);
    model->take_snapshot(versions_behind(end, *model, kLag), CheckpointCopy::kMemory);
    for (int64_t version = end; version < (end == 8 ? end + kLag + 1 : end + 1); ++version) publish(*model, version);
    model->write_snapshot(folder_.path() / std::to_string(end), unsynced_disk());
  }
  EXPECT_EQ(before.copies, kept * of_copy);
  EXPECT_EQ(model->bytes().copies, (3 + kept + versions) * of_copy);
  EXPECT_EQ(model->bytes().weights, before.weights);
}

TEST_P(Snapshots, AFullOrBrokenDiskIsAUserErrorAndTheNextSnapshotIsWhole) {
  const auto model = fresh();
  iterate(*model, 0, 1);
  train(*model, 1);
  int64_t saves = 0;
  const auto save = [&](const fs::path& folder, FileSystem& files) {
    const CheckpointCopy copy = ++saves % 2 == 0 ? CheckpointCopy::kMemory : CheckpointCopy::kNone;
    model->take_snapshot(versions_behind(2, *model, kLag), copy);
    model->write_snapshot(folder, files);
  };
  FaultyFileSystem counting({}, unsynced_disk());
  save(folder_.path() / "whole", counting);
  const int64_t operations = counting.operations();
  const auto whole = contents(folder_.path() / "whole");
  ASSERT_GT(operations, 10);
  for (const Fault::Kind kind : {Fault::Kind::kFails, Fault::Kind::kDiskIsFull}) {
    for (const int error : {ENOSPC, EIO}) {
      for (int64_t at = 0; at < operations; ++at) {
        FaultyFileSystem files({.kind = kind, .at = at, .error = error}, unsynced_disk());
        const fs::path folder = folder_.path() / "broken";
        try {
          save(folder, files);
          EXPECT_TRUE(contents(folder) == whole) << at;  // such as a folder that cannot be closed once it is synced
        } catch (const UserError& thrown) {
          EXPECT_TRUE(files.struck()) << at;
          EXPECT_THAT(thrown.what(), HasSubstr(folder_.path().string())) << at;
        }
        remove_tree(folder, unsynced_disk());
      }
    }
  }
  save(folder_.path() / "again", unsynced_disk());
  EXPECT_TRUE(contents(folder_.path() / "again") == whole);
}

INSTANTIATE_TEST_SUITE_P(Models, Snapshots, ::testing::ValuesIn(variants()), [](const auto& info) { return info.param.name; });

// A checkpoint of a whole model that a test may damage.
class Restoring : public ::testing::Test {
 protected:
  Restoring() { iterate_and_save(*fresh(variants()[0].options), 3, folder_.path()); }

  std::shared_ptr<LanguageModel> fresh(const TinyOptions& options) const { return tiny_model(model_.path(), options); }

  std::string error_of(const TinyOptions& options = variants()[0].options) {
    return message_of<UserError>([&] { fresh(options)->restore(folder_.path(), {.oldest = 1, .newest = 3}); });
  }

  // Writes the tensors of a file again as `change` has them.
  void rewrite(const std::string& file, const std::function<void(models::NamedTensors&)>& change) {
    models::NamedTensors tensors;
    {
      const auto stored = models::TensorFolder::of_file(folder_.path() / file);
      for (const std::string& name : stored.names()) {
        if (name == "steps")
          tensors.emplace_back(name, at::ones({1}, at::kLong));
        else
          tensors.emplace_back(name, stored.read(name, stored.entry(name).shape));
      }
    }
    change(tensors);
    models::write_safetensors(folder_.path() / file, tensors, unsynced_disk());
  }

  const TinyFolder model_;
  const TemporaryFolder folder_;
};

constexpr const char *kState = "actor.optimizer.safetensors", *kVersion = "actor.version-1.safetensors";

TEST_F(Restoring, NamesAMissingFile) {
  fs::remove(folder_.path() / kVersion);
  EXPECT_THAT(error_of(), HasSubstr((folder_.path() / kVersion).string()));
}

TEST_F(Restoring, NamesAMissingTensor) {
  for (const std::string missing : {"steps", "exp_avg_sq.model.norm.weight"}) {
    rewrite(kState, [&](auto& tensors) { std::erase_if(tensors, [&](const auto& tensor) { return tensor.first == missing; }); });
    EXPECT_THAT(error_of(), AllOf(HasSubstr(kState), HasSubstr("tensor \"" + missing + "\" is missing")));
  }
}

TEST_F(Restoring, NamesATensorOfAnotherShape) {
  rewrite(kVersion, [](auto& tensors) { tensors.front().second = at::ones({3, 2}); });
  EXPECT_THAT(error_of(), AllOf(HasSubstr(kVersion), HasSubstr("has shape [3, 2]; the model's is [96, 32]")));
}

TEST_F(Restoring, NamesATensorThatIsNotTrainedAnyMore) {
  EXPECT_THAT(error_of(variants()[2].options),
              AllOf(HasSubstr("tensor \"weight.model.embed_tokens.weight\" is none that is trained"),
                    HasSubstr("freeze and lora of the run that saved it")));
}

TEST_F(Restoring, NamesADamagedTensor) {
  const auto stored = models::TensorFolder::of_file(folder_.path() / kState);
  const std::string name = "exp_avg.model.layers.1.mlp.up_proj.weight";
  const auto place = static_cast<std::streamoff>(stored.entry(name).begin + 5);
  std::fstream file(folder_.path() / kState, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(place);
  const int byte = file.get();
  file.seekp(place);
  file.put(static_cast<char>(byte ^ 4));
  file.close();
  EXPECT_THAT(error_of(), AllOf(HasSubstr(kState), HasSubstr("tensor \"" + name + "\" has the checksum")));
}

// What others get has rounded or left something away; what a run goes on from has not.
TEST(AdapterAlone, IsEnoughToGoOn) {
  const TinyFolder folder;
  TinyOptions options = variants()[1].options;
  options.trained.lora->save = models::SavedAdapter::kAdapter;
  const auto model = tiny_model(folder.path(), options), again = tiny_model(folder.path(), options);
  iterate_and_save(*model, 2, folder.path() / "saved");
  EXPECT_TRUE(fs::exists(folder.path() / "saved/actor/adapter_model.safetensors"));
  EXPECT_FALSE(fs::exists(folder.path() / "saved/actor/model.safetensors"));
  again->restore(folder.path() / "saved", {.oldest = 0, .newest = 2});
  EXPECT_EQ(Trained(*again), Trained(*model));
}

TEST(FrozenModel, HasNothingToSave) {
  const TinyFolder folder;
  EXPECT_THROW(tiny_model(folder.path(), {})->take_snapshot({}, CheckpointCopy::kMemory), InternalError);
}

}  // namespace
}  // namespace sluice::nodes::model_snapshot_test
