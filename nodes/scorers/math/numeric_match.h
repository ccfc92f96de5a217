#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/contract/contract.h"
#include "engine/contract/node.h"
#include "nodes/scorers/math/number_in_text.h"
#include "nodes/scorers/scorer.h"

namespace sluice::nodes {

/// Where in a text its number stands.
enum class NumberPlace { kAuto, kBoxed, kHash, kLastNumber };

constexpr auto enum_names(NumberPlace) {
  return std::array{std::pair{NumberPlace::kAuto, "auto"}, std::pair{NumberPlace::kBoxed, "boxed"},
                    std::pair{NumberPlace::kHash, "hash"}, std::pair{NumberPlace::kLastNumber, "last_number"}};
}

/// What 50% is.
enum class PercentMeaning { kIgnore, kScale };

constexpr auto enum_names(PercentMeaning) {
  return std::array{std::pair{PercentMeaning::kIgnore, "ignore"}, std::pair{PercentMeaning::kScale, "scale"}};
}

/// Scores 1 where the number of the response is the number of the label, else 0.
///
///   [nodes.score]
///   type = "numeric_match"
///   inputs = ["generate"]
///   answer = "auto"            # "boxed": the last \boxed{...}; "hash": the line after the last ####; "last_number"
///   tolerance = 0.0            # numbers this far apart are equal
///   relative_tolerance = 0.0   # likewise, as a share of the label's number; either is enough
///   percent = "ignore"         # 50% is 50; "scale": 0.5
///
/// And the parameters of every scorer (scorer.h). What counts as a number is said in number_in_text.h; everything is exact:
/// 0.1 + 0.2 is 0.3, and 9007199254740993 is not 9007199254740992. What stands in a box or after #### must be a number as a
/// whole, with a unit or not. "auto" takes the last \boxed{...} if there is one, whatever is in it; else what is after the last
/// #### if that is a number; else the last number of the text. A label is that number if it is one as a whole; else, where it has
/// a box or ####, it is read like a response; else it must have a single number (single_number()).
///
/// Reads response[S], label[G]; writes score[S]  (S: samples, G: groups). A response without a number scores 0. A label without
/// one, or with several, is a UserError that names the group: nothing could match it, or what should not.
struct NumericMatchParams : ScorerParams {
  NumberPlace answer = NumberPlace::kAuto;
  double tolerance = 0;
  double relative_tolerance = 0;
  PercentMeaning percent = PercentMeaning::kIgnore;
};

/// The number that a label holds; nothing: none, so nothing could ever match it.
std::optional<NumberInText> number_of_label(std::string_view label, NumberPlace answer);

class NumericMatch final : public engine::Node {
 public:
  static void describe(engine::Contract<NumericMatchParams>& contract);

  NumericMatch(const NumericMatchParams& params, engine::NodeResources& resources);

  void process(engine::MicroBatch& batch) override;

 private:
  bool equal(const Rational& answer, const Rational& reference) const;

  const NumericMatchParams params_;
  const Rational tolerance_;
  const Rational relative_tolerance_;
  engine::MetricsRecorder& metrics_;
};

}  // namespace sluice::nodes
