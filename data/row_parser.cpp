#include "data/row_parser.h"

#include <algorithm>
#include <unordered_set>

#include "base/text/strings.h"

namespace sluice::data {
namespace {

constexpr size_t kDeepest = 512;
constexpr size_t kMostValues = 200'000;
constexpr size_t kMostMembers = 1'000;  // an ordered object is searched from its begin
constexpr size_t kMostRowMembers = 10'000;
constexpr size_t kMostSeen = 100;

bool is_integer(std::string_view digits) {
  if (digits.starts_with('-')) digits.remove_prefix(1);
  return std::ranges::all_of(digits, [](char c) { return c >= '0' && c <= '9'; });
}

// Builds the wanted members of one row while it is read. Returning false stops the reading.
class RowBuilder {
 public:
  RowBuilder(const std::vector<std::string>& names, Row& row, const std::string& unit) : names_(names), row_(row), unit_(unit) {}

  bool null() { return value(nullptr); }
  bool boolean(bool flag) { return value(flag); }
  bool number_integer(Json::number_integer_t number) { return value(number); }
  bool number_unsigned(Json::number_unsigned_t number) { return value(number); }
  bool number_float(Json::number_float_t number, const std::string& text) {
    return is_integer(text) ? value(text) : value(number);
  }
  bool string(std::string& text) { return value(std::move(text)); }
  bool binary(Json::binary_t&) { return true; }  // not in JSON texts
  bool start_object(size_t) { return start(Json::object()); }
  bool start_array(size_t) { return start(Json::array()); }
  bool end_object() { return end(); }
  bool end_array() { return end(); }

  bool key(std::string& name) {
    if (depth_ == 1) {
      if (!names_here_.insert(name).second) return refuse_twice(name);
      if (names_here_.size() > kMostRowMembers) return refuse("this " + unit_ + " has more than 10,000 members");
      name_ = std::move(name);
      wanted_ = std::ranges::find(names_, name_) != names_.end();
    } else if (!open_.empty()) {
      if (open_.back()->contains(name)) return refuse_twice(name);
      if (open_.back()->size() >= kMostMembers) return refuse("an object has more than 1,000 members");
      member_ = &(*open_.back())[name];
    }
    return true;
  }

  template <class Error>
  bool parse_error(size_t position, const std::string&, const Error& error) {
    const std::string what = error.what();
    const bool too_large = what.find("number overflow") != std::string::npos;
    fault_ = {"this " + unit_ + " is not a JSON object",
              too_large ? "this number is too large for a double" : reason_of_json_error(what), position == 0 ? 0 : position - 1};
    return false;
  }

  std::optional<RowFault> fault() const { return fault_; }

 private:
  bool start(Json container) {
    if (depth_ == 0 && !container.is_object()) return refuse_kind(container);
    if (++depth_ > kDeepest) return refuse("this " + unit_ + " nests deeper than 512 levels");
    if (depth_ == 1) return true;
    const bool is_member = depth_ == 2;
    if (is_member) note(container.type());
    if (open_.empty() && !(is_member && wanted_)) return true;
    Json* place = add(std::move(container));
    if (place == nullptr) return false;
    open_.push_back(place);
    return true;
  }

  bool end() {
    --depth_;
    if (!open_.empty()) open_.pop_back();
    return true;
  }

  template <class T>
  bool value(T&& scalar) {
    Json json(std::forward<T>(scalar));
    if (depth_ == 0) return refuse_kind(json);
    if (depth_ == 1) note(json.type());
    if (open_.empty() && !(depth_ == 1 && wanted_)) return true;
    return add(std::move(json)) != nullptr;
  }

  // Puts a value where it belongs: into the row, the object or the array that is open. Null: too many.
  Json* add(Json&& json) {
    if (++values_ > kMostValues) {
      refuse("this " + unit_ + " holds more than 200,000 values in the fields that are read");
      return nullptr;
    }
    if (open_.empty()) {
      Json& place = row_.fields[name_];
      place = std::move(json);
      return &place;
    }
    if (open_.back()->is_array()) return &open_.back()->emplace_back(std::move(json));
    *member_ = std::move(json);
    return member_;
  }

  void note(Json::value_t type) {
    if (row_.seen.size() < kMostSeen) row_.seen.emplace_back(name_.substr(0, 200), type);
  }

  bool refuse_kind(const Json& json) {
    const char* article = json.is_null() ? "" : json.is_array() ? "an " : "a ";
    fault_ = {"each " + unit_ + " must be a JSON object", std::string("this is ") + article + json.type_name(), std::nullopt};
    return false;
  }

  bool refuse_twice(const std::string& name) {
    return refuse("this " + unit_ + " has " + sluice::quoted(name.substr(0, 200)) + " twice");
  }

  bool refuse(std::string message) {
    fault_ = {std::move(message), {}, std::nullopt};
    return false;
  }

  const std::vector<std::string>& names_;
  Row& row_;
  const std::string& unit_;
  std::unordered_set<std::string> names_here_;  // of the row's members
  std::optional<RowFault> fault_;
  size_t depth_ = 0;
  size_t values_ = 0;
  std::string name_;  // of the row's member that is being read
  bool wanted_ = false;
  // The containers of that member that are open. A container grows only while it is the last of them, so pointers stay valid.
  std::vector<Json*> open_;
  Json* member_ = nullptr;
};

}  // namespace

std::optional<RowFault> RowParser::parse(std::string_view text, Row& row, const std::string& unit) const {
  row = Row{};
  RowBuilder builder(names_, row, unit);
  Json::sax_parse(text.begin(), text.end(), &builder);
  return builder.fault();
}

const Json* find_field(const Json& object, const std::string& name) {
  if (const auto found = object.find(name); found != object.end()) return &*found;
  const Json* at = &object;
  for (const std::string& part : split(name, '.')) {
    if (!at->is_object()) return nullptr;
    const auto found = at->find(part);
    if (found == at->end()) return nullptr;
    at = &*found;
  }
  return at;
}

std::vector<std::string> members_of(const std::string& name) {
  const size_t dot = name.find('.');
  if (dot == std::string::npos) return {name};
  return {name, name.substr(0, dot)};
}

}  // namespace sluice::data
