#pragma once

#include <string>
#include <utility>
#include <vector>

#include "engine/contract/spec/spec.h"

namespace sluice::engine {

/// Writes a pipeline in C++ instead of TOML:
///
///   PipelineSpec spec = PipelineBuilder("hello", 3)
///                           .budget(64, 16)
///                           .node("numbers", "count", {}, {{"groups_per_iteration", int64_t{8}}})
///                           .node("total", "sum", {"numbers"})
///                           .build();
///
/// Nothing is checked here; check() does. Problems have no place in a file and name the node and the key instead.
class PipelineBuilder {
 public:
  using Data = decltype(Value::data);
  using Params = std::vector<std::pair<std::string, Data>>;

  PipelineBuilder(std::string name, int64_t iterations);

  PipelineBuilder& budget(int64_t tokens_in_flight, int64_t micro_batch_tokens);

  /// One key of [pipeline], [schedule], [runtime] or [checkpoint].
  PipelineBuilder& set(const std::string& table, const std::string& key, Data value);

  /// [cluster.roles.NAME]
  PipelineBuilder& role(const std::string& name, const Params& params);

  PipelineBuilder& model(const std::string& name, const Params& params);
  PipelineBuilder& node(const std::string& name, const std::string& type, const std::vector<std::string>& inputs,
                        const Params& params = {}, const std::string& on = {});

  PipelineSpec build() const { return spec_; }

 private:
  PipelineSpec spec_;
};

}  // namespace sluice::engine
