#pragma once

#include <string>
#include <string_view>

#include "base/json/json.h"

namespace sluice::nodes {

/// What a server or a judge wrote, as JSON.
struct AnswerJson {
  Json value = Json(Json::value_t::discarded);
  std::string fault = {};   // why there is none, as the end of a sentence: "is not JSON"; empty: there is one
  bool is_refused = false;  // it is JSON nevertheless
};

/// Refused are a number that no double holds, as 1e999, and an object that has a key twice, of which readers take the first or
/// the last. What nests too deep for base/json/json.h is not JSON.
AnswerJson json_of_answer(std::string_view text);

}  // namespace sluice::nodes
