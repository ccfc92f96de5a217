#include "models/folder/safetensors_index.h"

#include <cstdint>
#include <filesystem>
#include <unordered_set>

#include "base/error.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

constexpr size_t kLargest = 100'000'000;

// Takes the index as a stream of events: a model has tens of thousands of tensors, and the rest is not needed.
class IndexReader {
 public:
  std::map<std::string, std::vector<std::string>> files;
  std::string problem;  // why parsing stopped
  bool has_map = false;

  bool start_object(size_t) { return open(true); }
  bool start_array(size_t) { return open(false); }
  bool end_object() { return close(); }
  bool end_array() { return close(); }

  bool key(std::string& text) {
    if (level_ == 1) section_ = text;
    if (level_ == 2) tensor_ = text;
    return true;
  }

  bool string(std::string& text) { return in_map() ? place(text) : value("a string"); }
  bool number_unsigned(uint64_t) { return value("a number"); }
  bool number_integer(int64_t) { return value("a number"); }
  bool number_float(double, const std::string&) { return value("a number"); }
  bool null() { return value("null"); }
  bool boolean(bool) { return value("a boolean"); }
  bool binary(std::vector<uint8_t>&) { return value("binary data"); }

  template <class Error>
  bool parse_error(size_t position, const std::string&, const Error&) {
    return stop("is not JSON at byte " + std::to_string(position));
  }

 private:
  bool is_map() const { return section_ == "weight_map"; }
  bool in_map() const { return level_ == 2 && is_map(); }

  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }

  bool open(bool object) {
    if (level_ == 0 && !object) return value("a list");
    if (level_ == 1 && is_map()) {
      if (!object) return value("a list");
      if (has_map) return stop("has weight_map twice");
      has_map = true;
    }
    if (in_map()) return value(object ? "an object" : "a list");
    ++level_;
    return true;
  }

  bool close() {
    --level_;
    return true;
  }

  bool value(const std::string& what) {
    if (level_ == 0) return stop("must be a JSON object, not " + what);
    if (level_ == 1 && is_map()) return stop("needs an object weight_map, not " + what);
    if (in_map()) return stop("weight_map must give a file name for " + sluice::quoted(tensor_) + ", not " + what);
    return true;
  }

  bool place(const std::string& file) {
    const bool plain = !file.empty() && file != "." && file != ".." && std::filesystem::path(file).filename() == file;
    if (!plain) return stop("weight_map gives " + sluice::quoted(file) + "; expected a file of the same folder");
    if (!tensors_.insert(tensor_).second) return stop("weight_map has " + sluice::quoted(tensor_) + " twice");
    files[file].push_back(tensor_);
    return true;
  }

  int level_ = 0;        // 1: the sections, 2: inside one
  std::string section_;  // at level 1
  std::string tensor_;   // at level 2
  std::unordered_set<std::string> tensors_;
};

}  // namespace

std::map<std::string, std::vector<std::string>> parse_safetensors_index(std::string_view text, const std::string& file_name) {
  if (text.size() > kLargest) throw UserError(file_name + " has more than 100 MB");
  IndexReader reader;
  if (!Json::sax_parse(text, &reader)) throw UserError(file_name + ": " + reader.problem);
  if (!reader.has_map) throw UserError(file_name + ": an object weight_map is missing");
  if (reader.files.empty()) throw UserError(file_name + ": weight_map names no tensor", "fetch it again");
  return std::move(reader.files);
}

}  // namespace sluice::models
