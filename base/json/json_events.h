#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

/// What Json::sax_parse() tells while it reads a text, all of it passed over: a reader derives from it, and hides what it looks
/// at by functions of the same names. Each returns whether reading goes on; an error ends it. A plain value, of one reading.
struct JsonEvents {
  bool start_object(size_t) { return true; }
  bool end_object() { return true; }
  bool key(std::string&) { return true; }
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
};

}  // namespace sluice
