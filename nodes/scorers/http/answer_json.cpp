#include "nodes/scorers/http/answer_json.h"

#include <optional>
#include <set>
#include <vector>

#include "base/json/json_events.h"
#include "base/text/shown_text.h"

namespace sluice::nodes {
namespace {

constexpr int kOutOfRange = 406;  // of the library's errors

// Follows the keys of a text up to the first that an object has twice, or to where it is no JSON.
class KeyReader : public JsonEvents {
 public:
  std::optional<std::string> twice;  // that key
  bool is_out_of_range = false;      // a number that no double holds

  bool start_object(size_t) { return keys_.emplace_back(), true; }
  bool end_object() { return keys_.pop_back(), true; }
  bool key(std::string& key) {
    if (!keys_.back().insert(key).second) twice = key;
    return !twice;
  }

  template <class Error>
  bool parse_error(size_t, const std::string&, const Error& error) {
    is_out_of_range = error.id == kOutOfRange;
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of each open object
};

}  // namespace

AnswerJson json_of_answer(std::string_view text) {
  KeyReader reader;
  Json::sax_parse(text, &reader);
  if (reader.twice) return {.fault = "has the key " + shown_text(*reader.twice) + " twice in an object", .is_refused = true};
  if (reader.is_out_of_range) return {.fault = "has a number that is out of range", .is_refused = true};
  AnswerJson answer{.value = json_or_discarded(text)};
  if (answer.value.is_discarded()) answer.fault = "is not JSON";
  return answer;
}

}  // namespace sluice::nodes
