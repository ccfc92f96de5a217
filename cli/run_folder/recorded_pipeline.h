#pragma once

#include <string>
#include <vector>

#include "base/json/json.h"
#include "engine/checkpoint/manifest.h"
#include "engine/contract/registry.h"

namespace sluice::cli {

/// The pipeline of a checkpoint, as its manifest keeps it: each key with the value that the run had, of a component or a table
/// each for itself (`optimizer.learning_rate`). No plugin and no file that it names need be there. Borrows the manifest.
class RecordedPipeline {
 public:
  explicit RecordedPipeline(const engine::Manifest& manifest) : manifest_(manifest), keys_(manifest.pipeline) {}

  /// Null where the key is not there or not set; what is neither text, number, truth value nor a list of those is its TOML text.
  Json value(const std::string& table, const std::string& key) const;

  /// Likewise, of a text; empty where there is none.
  std::string text(const std::string& table, const std::string& key) const;

  /// Likewise, of a number.
  double number(const std::string& table, const std::string& key, double otherwise) const;

  /// Likewise, of a number that may have a schedule: what it was in the last iteration before the checkpoint.
  double last_number(const std::string& table, const std::string& key, double otherwise, const engine::Registry& registry) const;

  /// The model whose keys say what `model` is: the one that it is a moving average of, or itself.
  std::string described_by(const std::string& model) const;

  struct Node {
    std::string name, type;
    std::string table() const { return "nodes." + name; }
  };
  /// In the order of the file.
  std::vector<Node> nodes() const;

  /// Whether some key of the node is this text, such as the name of a model.
  bool mentions(const Node& node, const std::string& text) const;

  /// All that is set, as a pipeline file. Paths below `home` begin with `~`, as they may in such a file: so that a text that is
  /// shown to others does not have the name of who ran it.
  std::string toml(const std::string& home) const;

 private:
  std::string toml_of(const std::string& table, const std::string& key) const;

  const engine::Manifest& manifest_;
  const std::vector<engine::EffectiveKey>& keys_;
};

}  // namespace sluice::cli
