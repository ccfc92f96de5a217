#include "cli/try/try_preference.h"

#include <numeric>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/try/try_tensors.h"
#include "nodes/columns/columns.h"
#include "nodes/train/sample_pairs.h"

namespace sluice::cli {
namespace {

namespace columns = nodes::columns;
using engine::ColumnSpec;

std::vector<float> narrow(const std::vector<double>& values) { return {values.begin(), values.end()}; }

// The actions of `samples`, as places among all actions. [A']
at::Tensor actions_of(const engine::Layout& layout, const std::vector<size_t>& samples) {
  std::vector<int64_t> places;
  for (const size_t sample : samples) {
    const auto first = layout.action_offsets[sample];
    places.resize(places.size() + static_cast<size_t>(layout.action_offsets[sample + 1] - first));
    std::iota(places.end() - (layout.action_offsets[sample + 1] - first), places.end(), first);
  }
  return at::from_blob(places.data(), {static_cast<int64_t>(places.size())}, at::kLong).clone();
}

}  // namespace

std::vector<ColumnSpec> TriedPreference::reads() const {
  std::vector<ColumnSpec> specs{columns::kLogprobs.spec(), columns::kScore.spec()};
  if (objective_->reads_reference()) specs.push_back(columns::kReferenceLogprobs.spec());
  return specs;
}

Json TriedPreference::run(const ColumnsInput& input) const {
  for (const ColumnSpec& column : reads()) {
    if (!input.has(column.name)) {
      throw UserError("the objective reads column '" + column.name + "', which is not given",
                      "given are " + join(input.names(), ", "));
    }
  }
  const engine::Layout& layout = input.layout();
  const std::vector<float> mask =
      input.has(columns::kMask.name) ? narrow(input.reals(columns::kMask.name)) : std::vector<float>();
  const nodes::PairedSamples paired(nodes::pairs_with_actions(layout, narrow(input.reals(columns::kScore.name)), mask));
  const auto pairs = static_cast<double>(paired.pairs());
  const at::Tensor actions = actions_of(layout, paired.samples());                                  // [A']
  const at::Tensor trained = tensor_of(input.reals(columns::kLogprobs.name)).requires_grad_(true);  // [A]
  at::Tensor reference;                                                                             // [A'], or undefined
  if (objective_->reads_reference())
    reference = tensor_of(input.reals(columns::kReferenceLogprobs.name)).index_select(0, actions);
  const auto inputs = nodes::preference_inputs(paired, layout, mask, trained.index_select(0, actions), reference);
  const nodes::PreferenceTerms terms = objective_->compute(inputs);
  const at::Tensor loss_sum = terms.losses.sum();
  const at::Tensor loss = pairs > 0 ? loss_sum.div(pairs) : loss_sum;
  loss.backward();

  Json json;
  json["loss"] = real_to_json(loss.item().toDouble());
  json["loss_sum"] = real_to_json(loss_sum.item().toDouble());
  json["count"] = static_cast<int64_t>(pairs);
  json["gradient"] = {{columns::kLogprobs.name, actions_to_json(vector_of(trained.grad()), layout)}};
  json["metrics"] = Json::object();
  if (pairs > 0) {
    for (const auto& [name, value] : nodes::preference_metrics(inputs, terms)) json["metrics"][name] = real_to_json(value);
  }
  return json;
}

}  // namespace sluice::cli
