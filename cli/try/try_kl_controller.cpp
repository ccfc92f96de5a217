#include "cli/try/try_kl_controller.h"

#include <cmath>

#include "base/error.h"
#include "base/text/strings.h"
#include "cli/try/columns_json.h"

namespace sluice::cli {
namespace {

const char* const kControllerForm = "the form is {\"kl\": 5.0, \"samples\": 256, \"coefficient\": 0.2}";

void check_keys(const Json& json) {
  if (!json.is_object()) throw UserError("a KL controller reads an object", kControllerForm);
  for (const auto& [key, value] : json.items()) {
    if (key != "kl" && key != "samples" && key != "coefficient")
      throw UserError("unknown key " + sluice::quoted(key), kControllerForm);
    if (!value.is_number()) throw UserError(sluice::quoted(key) + " must be a number", kControllerForm);
    if (key != "kl" && value.get<double>() < 0) throw UserError(sluice::quoted(key) + " must be at least 0", kControllerForm);
  }
}

double number(const Json& json, const char* key) {
  if (!json.contains(key)) throw UserError(sluice::quoted(key) + " is missing", kControllerForm);
  return json[key].get<double>();
}

}  // namespace

Json next_coefficient(const nodes::KlController& controller, std::string_view input) {
  const Json json = parse_json(input, "standard input");
  check_keys(json);
  const auto initial = controller.initial();
  const double coefficient = initial && !json.contains("coefficient") ? *initial : number(json, "coefficient");
  return {{"coefficient", real_to_json(controller.next(coefficient, number(json, "kl"), number(json, "samples")))}};
}

}  // namespace sluice::cli
