#include "nodes/scorers/exact_json.h"

#include <charconv>
#include <optional>
#include <vector>

#include "base/text/strings.h"
#include "nodes/scorers/number_parts.h"

namespace sluice::nodes {
namespace {

constexpr char kBigInteger = '\xff';  // never a part of UTF-8

Json integer_of(std::string_view digits) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error == std::errc() && end == digits.data() + digits.size()) return value;
  return kBigInteger + std::string(digits);
}

// The digits of a number as JSON writes it, where it has no fraction: -1.50e2 is -150.
std::optional<std::string> whole_digits(std::string_view number) {
  const bool negative = number.starts_with('-');
  if (negative) number.remove_prefix(1);
  std::string digits(take_digits(number));
  const std::string_view decimals = take_decimals(number);
  digits += decimals;
  int64_t scale = static_cast<int64_t>(decimals.size()) - take_exponent(number);
  if (!number.empty()) return std::nullopt;  // an exponent of many digits
  digits.erase(0, std::min(digits.find_first_not_of('0'), digits.size()));
  if (digits.empty()) return "0";
  for (; scale > 0 && digits.ends_with('0'); --scale) digits.pop_back();
  if (scale > 0) return std::nullopt;
  digits.append(static_cast<size_t>(-scale), '0');  // at most 308: it is a double too
  return (negative ? "-" : "") + digits;
}

// Builds the value that a text holds while the library reads it.
class ExactReader {
 public:
  explicit ExactReader(WholeFloats floats) : floats_(floats) {}

  Json take() { return std::move(root_); }

  bool null() { return put(nullptr); }
  bool boolean(bool value) { return put(value); }
  bool number_integer(int64_t value) { return put(value); }
  bool number_unsigned(uint64_t value) { return put(integer_of(std::to_string(value))); }
  bool number_float(double value, const std::string& written) {
    if (written.find_first_of(".eE") == std::string::npos) return put(integer_of(written));
    const auto digits = floats_ == WholeFloats::kBecomeIntegers ? whole_digits(written) : std::nullopt;
    return put(digits ? integer_of(*digits) : Json(value));
  }
  bool string(std::string& value) { return put(std::move(value)); }
  bool binary(std::vector<uint8_t>&) { return false; }
  bool start_object(size_t) { return open(Json::object()); }
  bool start_array(size_t) { return open(Json::array()); }
  bool key(std::string& key) { return key_ = std::move(key), true; }
  bool end_object() { return open_.pop_back(), true; }
  bool end_array() { return open_.pop_back(), true; }

  template <class Error>
  bool parse_error(size_t, const std::string&, const Error&) {
    return false;
  }

 private:
  Json& place() {
    if (open_.empty()) return root_;
    if (open_.back()->is_object()) return (*open_.back())[key_];
    return open_.back()->emplace_back();
  }

  bool put(Json value) { return place() = std::move(value), true; }

  bool open(Json value) {
    Json& opened = place();
    opened = std::move(value);
    open_.push_back(&opened);  // nothing is added to what is around it before it is closed
    return true;
  }

  WholeFloats floats_;
  Json root_;
  std::string key_;
  std::vector<Json*> open_;
};

}  // namespace

Json exact_json(std::string_view text, WholeFloats floats) {
  Json value = json_or_discarded(text);
  if (value.is_discarded()) return value;
  ExactReader reader(floats);
  Json::sax_parse(text, &reader);
  return reader.take();
}

std::string_view big_integer_in(std::string_view text) {
  return text.starts_with(kBigInteger) ? text.substr(1) : std::string_view();
}

std::string_view big_integer_in(const Json& value) {
  return value.is_string() ? big_integer_in(std::string_view(value.get_ref<const std::string&>())) : std::string_view();
}

bool is_text(const Json& value) { return value.is_string() && big_integer_in(value).empty(); }

std::string text_of_exact(const Json& value) {
  if (const std::string_view digits = big_integer_in(value); !digits.empty()) return std::string(digits);
  if (!value.is_structured()) return value.dump();
  std::vector<std::string> parts;
  for (const auto& [key, inner] : value.items()) {
    parts.push_back((value.is_object() ? Json(key).dump() + ":" : "") + text_of_exact(inner));
  }
  return value.is_object() ? "{" + join(parts, ",") + "}" : "[" + join(parts, ",") + "]";
}

}  // namespace sluice::nodes
