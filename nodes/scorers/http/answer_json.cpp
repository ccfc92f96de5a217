#include "nodes/scorers/http/answer_json.h"

#include <cstdint>
#include <set>
#include <vector>

#include "base/error.h"
#include "base/shown_text.h"

namespace sluice::nodes {
namespace {

// Follows the keys of a text that is JSON, up to the first that an object has twice.
class KeyReader {
 public:
  std::string twice;  // that key, if has_twice
  bool has_twice = false;

  bool start_object(size_t) { return keys_.emplace_back(), true; }
  bool end_object() { return keys_.pop_back(), true; }
  bool key(std::string& key) {
    has_twice = !keys_.back().insert(key).second;
    if (has_twice) twice = key;
    return !has_twice;
  }
  bool start_array(size_t) { return true; }
  bool end_array() { return true; }
  bool string(std::string&) { return true; }
  bool number_unsigned(uint64_t) { return true; }
  bool number_integer(int64_t) { return true; }
  bool number_float(double, const std::string&) { return true; }
  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool binary(std::vector<uint8_t>&) { return true; }

  template <class Error>
  bool parse_error(size_t, const std::string&, const Error&) {
    return false;
  }

 private:
  std::vector<std::set<std::string>> keys_;  // of each open object
};

}  // namespace

AnswerJson json_of_answer(std::string_view text) {
  AnswerJson answer;
  try {
    answer.value = parse_json(text, "it");
  } catch (const UserError& error) {
    const bool is_too_large = error.problems().front().message.find("too large for a double") != std::string::npos;
    answer.fault = is_too_large ? "has a number that is out of range" : "is not JSON";
    answer.is_refused = is_too_large;
    return answer;
  }
  KeyReader reader;
  Json::sax_parse(text, &reader);
  if (!reader.has_twice) return answer;
  return {.fault = "has the key " + shown_text(reader.twice) + " twice in an object", .is_refused = true};
}

}  // namespace sluice::nodes
