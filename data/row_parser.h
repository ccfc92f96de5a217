#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json/json.h"

namespace sluice::data {

/// What is wrong with a row, and where in its line.
struct RowFault {
  std::string message;
  std::string caret;           // may be empty
  std::optional<size_t> byte;  // from 0; none: the line as a whole
};

/// One row: a JSON object, of which only what is asked for is kept.
struct Row {
  Json fields = Json::object();                             // the members that were asked for
  std::vector<std::pair<std::string, Json::value_t>> seen;  // names and types of the first members, for messages
};

/// Reads rows, and keeps the members called `names`. Other members are checked for syntax and cost no memory, so a row takes
/// little more than what is used of it. An integer beyond 64 bits is kept as the text of its digits.
///
/// A row is at fault if it is no JSON object, nests deeper than 512 levels, has more than 10,000 members or two of one name, or
/// if what is kept of it has more than 200,000 values or an object of more than 1,000 members or two of one name. Immutable:
/// const use from many threads.
class RowParser {
 public:
  explicit RowParser(std::vector<std::string> names) : names_(std::move(names)) {}

  /// Fills `row`, or says what is wrong; `unit` is how messages call the row.
  std::optional<RowFault> parse(std::string_view text, Row& row, const std::string& unit = "line") const;

 private:
  std::vector<std::string> names_;
};

/// The member that `name` names: the one that is called so, or for "meta.answer" the member "answer" of the member "meta". Null
/// if there is none.
const Json* find_field(const Json& object, const std::string& name);

/// The member of a row that holds the field `name`: all of it, and what is before its first dot.
std::vector<std::string> members_of(const std::string& name);

}  // namespace sluice::data
