#include "dsl/parse.h"

#include "dsl/layers.h"
#include "dsl/shape.h"

namespace sluice::dsl {
namespace {

LoadResult load(Files files, const std::vector<std::string>& overrides, Problems problems) {
  for (const std::string& argument : overrides) {
    auto layer = parse_override(argument, problems);
    if (layer && files.complete) files.layers.push_back(std::move(*layer));
  }
  // Half of a pipeline would be reported for what the other half, which could not be read, has.
  if (!files.complete) return {.spec = {}, .problems = std::move(problems)};
  Merged merged = merge_layers(std::move(files.layers), problems);
  LoadResult result;
  result.spec = shape_pipeline(std::move(merged.root), problems);
  result.spec.removed = std::move(merged.removed);
  result.problems = std::move(problems);
  return result;
}

}  // namespace

LoadResult load_pipeline(const std::filesystem::path& file, const std::vector<std::string>& overrides) {
  Problems problems;
  Files files = read_layers(file, problems);
  return load(std::move(files), overrides, std::move(problems));
}

LoadResult parse_pipeline(std::string text, std::string name, std::string base_folder,
                          const std::vector<std::string>& overrides) {
  Problems problems;
  Files files = parse_layers(std::move(text), std::move(name), base_folder, problems);
  return load(std::move(files), overrides, std::move(problems));
}

}  // namespace sluice::dsl
