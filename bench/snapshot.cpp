// How long does a run wait for the copy of a model that is saved?
//
// A model of 126 million parameters with its optimizer: Model::take_snapshot() against memcpy of as many bytes into memory that
// has been written to before, by as many threads. The first copy also gets its memory from the system, which a
// run has done while it begins: that case only informs.

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <thread>
#include <vector>

#include "base/files/file.h"
#include "base/files/folder.h"
#include "base/json/json.h"
#include "base/process/machine.h"
#include "bench/questions.h"
#include "bench/report.h"
#include "models/folder/folder.h"
#include "nodes/models/language_model.h"
#include "nodes/models/passes/threads.h"

namespace sluice::bench {
namespace {

namespace fs = std::filesystem;

struct Sizes {
  int64_t hidden, layers, vocabulary;
  int repetitions;
};

// A folder with the configuration alone, for as long as it is read.
class ConfigFolder {
 public:
  explicit ConfigFolder(const Sizes& sizes)
      : path_(fs::temp_directory_path() / ("sluice-snapshot-" + std::to_string(::getpid()))) {
    make_folders(path_);
    const Json config{{"architectures", {"LlamaForCausalLM"}},
                      {"model_type", "llama"},
                      {"vocab_size", sizes.vocabulary},
                      {"hidden_size", sizes.hidden},
                      {"intermediate_size", 4 * sizes.hidden},
                      {"num_hidden_layers", sizes.layers},
                      {"num_attention_heads", sizes.hidden / 64},
                      {"num_key_value_heads", sizes.hidden / 64},
                      {"max_position_embeddings", 2048},
                      {"rms_norm_eps", 1e-6},
                      {"rope_theta", 10000.0},
                      {"hidden_act", "silu"},
                      {"tie_word_embeddings", false}};
    replace_file(path_ / "config.json", config.dump());
  }
  ~ConfigFolder() { fs::remove_all(path_); }
  ConfigFolder(const ConfigFolder&) = delete;
  ConfigFolder& operator=(const ConfigFolder&) = delete;

  const fs::path& path() const { return path_; }

 private:
  const fs::path path_;
};

// Two blocks, each page of which has been written to.
class Memcpy {
 public:
  Memcpy(size_t bytes, size_t threads) : from_(bytes, 1), to_(bytes, 2), threads_(threads) {}

  void operator()() {
    std::vector<std::jthread> others;
    for (size_t i = 0; i < threads_; ++i) {
      const size_t begin = from_.size() * i / threads_, end = from_.size() * (i + 1) / threads_;
      others.emplace_back([this, begin, end] { std::memcpy(to_.data() + begin, from_.data() + begin, end - begin); });
    }
  }

 private:
  std::vector<char> from_, to_;
  const size_t threads_;
};

void run(const Sizes& sizes) {
  const auto threads = available_cores();
  nodes::use_threads(threads);
  const ConfigFolder folder(sizes);
  nodes::TrainedLanguageModel model("actor", folder.path(),
                                    models::load_transformer(folder.path(), {.random_init = true, .trainable = true}),
                                    {.optimizer = {.learning_rate = 1e-5}}, /*versions=*/{});
  const auto trained = static_cast<size_t>(model.trained().optimizer().parameters().size());
  const size_t bytes = 3 * trained * sizeof(float);  // weights, and two moments of each
  Memcpy memcpy_of_its_bytes(bytes, static_cast<size_t>(threads));
  const auto copy_as_much = [&] { memcpy_of_its_bytes(); };
  const std::string name = std::to_string((trained + 500'000) / 1'000'000) + "M parameters, ";
  Case first{.bench = "snapshot", .name = name + "the first", .unit = "ms", .ours = {}, .reference = {}};
  Case later{.bench = "snapshot", .name = name + "later ones", .unit = "ms", .ours = {}, .reference = {}};
  const auto snapshot = [&] { model.take_snapshot({.oldest = 0, .newest = 0}, engine::CheckpointCopy::kMemory); };
  copy_as_much();
  first.ours.push_back(seconds_of(snapshot) * 1e3);
  first.reference.push_back(seconds_of(copy_as_much) * 1e3);
  for (int i = 0; i < sizes.repetitions; ++i) {
    later.ours.push_back(seconds_of(snapshot) * 1e3);
    later.reference.push_back(seconds_of(copy_as_much) * 1e3);
  }
  later.goal.ratio_at_most = 1.3;
  print(first);
  print(later);
}

}  // namespace
}  // namespace sluice::bench

int main(int argc, char** argv) {
  const bool smoke = sluice::bench::is_smoke(argc, argv);
  sluice::bench::run(smoke ? sluice::bench::Sizes{64, 2, 97, 1} : sluice::bench::Sizes{768, 12, 8192, 15});
  return 0;
}
