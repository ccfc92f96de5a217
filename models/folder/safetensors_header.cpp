#include "models/folder/safetensors_header.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <set>
#include <string_view>
#include <tuple>
#include <unordered_map>

#include "base/error.h"
#include "base/files/git_lfs.h"
#include "base/json/json.h"
#include "base/text/strings.h"

namespace sluice::models {
namespace {

constexpr size_t kLengthBytes = 8;
constexpr uint64_t kLongestHeader = 100'000'000;
// Beyond any model; they keep what a header of that length can make of the memory within bounds.
constexpr size_t kMostTensors = 200'000, kMostDims = 64, kLongestName = 1024;
constexpr const char* kDamaged = "the file is damaged or was not written completely: fetch or write it again";

struct Dtype {
  std::string_view name;
  uint64_t bits;
};

constexpr Dtype kDtypes[] = {
    {"BOOL", 8}, {"U8", 8},   {"I8", 8},    {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8}, {"I16", 16},
    {"U16", 16}, {"F16", 16}, {"BF16", 16}, {"I32", 32},    {"U32", 32},    {"F32", 32},    {"F64", 64},
    {"I64", 64}, {"U64", 64}, {"C64", 64},  {"F4", 4},      {"F6_E2M3", 6}, {"F6_E3M2", 6},
};

// Takes the header as a stream of events, so that nothing but what the format allows is ever held in memory.
class HeaderReader {
 public:
  std::vector<TensorEntry> tensors;
  std::unordered_map<std::string, uint32_t> checksums;  // by the name of the tensor
  std::string problem;                                  // why parsing stopped

  bool start_object(size_t) {
    if (level_ >= 2 || (level_ == 1 && name_.empty())) return unexpected("an object");
    ++level_;
    if (level_ == 2 && !is_metadata()) begin_tensor();
    return true;
  }

  bool end_object() {
    if (level_ == 2 && !is_metadata() && !end_tensor()) return false;
    --level_;
    return true;
  }

  bool key(std::string& text) {
    if (level_ == 2) {
      field_ = text;
      return is_metadata() || check_field();
    }
    if (text.size() > kLongestName) return stop("a name of " + std::to_string(text.size()) + " bytes is too long");
    if (names_.size() > kMostTensors) return stop("there are more than " + std::to_string(kMostTensors) + " tensors");
    name_ = text;
    return names_.insert(text).second || stop("tensor " + sluice::quoted(text) + " is there twice");
  }

  bool start_array(size_t) {
    if (!in_list_field() || in_array_) return unexpected("a list");
    in_array_ = true;
    return true;
  }

  bool end_array() {
    in_array_ = false;
    return true;
  }

  bool string(std::string& text) {
    if (level_ == 2 && is_metadata()) return take_metadata(text);
    if (level_ != 2 || field_ != "dtype") return unexpected("a string");
    tensors.back().dtype = text;
    return true;
  }

  bool number_unsigned(uint64_t number) {
    if (!in_array_) return unexpected("a number");
    if (field_ == "data_offsets") {
      offsets_.push_back(number);
      return offsets_.size() <= 2 || stop(tensor_name() + " has more than two data_offsets");
    }
    if (tensors.back().shape.size() == kMostDims) return stop(tensor_name() + " has more than 64 dimensions");
    if (number > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())) return overflow();
    tensors.back().shape.push_back(static_cast<int64_t>(number));
    return true;
  }

  bool number_integer(int64_t) {
    return in_array_ ? stop(tensor_name() + " has a negative number in " + field_) : unexpected("a number");
  }
  bool number_float(double, const std::string&) { return in_array_ ? overflow() : unexpected("a number"); }
  bool null() { return unexpected("null"); }
  bool boolean(bool) { return unexpected("a boolean"); }
  bool binary(std::vector<uint8_t>&) { return unexpected("binary data"); }

  template <class Error>
  bool parse_error(size_t position, const std::string&, const Error&) {
    return stop("is not JSON at byte " + std::to_string(position));
  }

 private:
  bool is_metadata() const { return name_ == "__metadata__"; }
  bool in_list_field() const { return level_ == 2 && !is_metadata() && (field_ == "shape" || field_ == "data_offsets"); }
  std::string tensor_name() const { return "tensor " + sluice::quoted(name_); }

  bool stop(std::string why) {
    problem = std::move(why);
    return false;
  }

  bool overflow() { return stop(tensor_name() + " has a " + field_ + " number that does not fit into 63 bits"); }

  bool unexpected(const std::string& what) {
    if (level_ == 0) return stop("must be a JSON object, not " + what);
    if (level_ == 1) return stop(tensor_name() + " must be an object, not " + what);
    return stop(tensor_name() + " has " + what + " at " + sluice::quoted(field_) + ", where the format has none");
  }

  bool check_field() {
    bool* seen = nullptr;
    if (field_ == "dtype") seen = &has_dtype_;
    if (field_ == "shape") seen = &has_shape_;
    if (field_ == "data_offsets") seen = &has_offsets_;
    if (seen == nullptr)
      return stop(tensor_name() + " has the key " + sluice::quoted(field_) + "; expected dtype, shape, data_offsets");
    if (*seen) return stop(tensor_name() + " has " + sluice::quoted(field_) + " twice");
    return *seen = true;
  }

  bool take_metadata(const std::string& text) {
    if (!field_.starts_with(kChecksumKey)) return true;
    uint32_t checksum = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), checksum, 16);
    if (text.size() != 8 || error != std::errc() || end != text.data() + text.size()) {
      return stop("__metadata__ has a " + sluice::quoted(field_) + " that is not eight hexadecimal digits");
    }
    checksums[field_.substr(std::string_view(kChecksumKey).size())] = checksum;
    return true;
  }

  void begin_tensor() {
    tensors.emplace_back().name = name_;
    offsets_.clear();
    has_dtype_ = has_shape_ = has_offsets_ = false;
  }

  bool end_tensor() {
    if (!has_dtype_ || tensors.back().dtype.empty()) return stop(tensor_name() + " has no dtype");
    if (!has_shape_) return stop(tensor_name() + " has no shape");
    if (offsets_.size() != 2) return stop(tensor_name() + " needs two data_offsets");
    tensors.back().begin = offsets_[0];
    tensors.back().end = offsets_[1];
    return true;
  }

  int level_ = 0;  // 1: among the tensors, 2: inside one
  bool in_array_ = false;
  std::string name_;   // of the tensor
  std::string field_;  // of its description
  std::set<std::string> names_;
  std::vector<uint64_t> offsets_;
  bool has_dtype_ = false, has_shape_ = false, has_offsets_ = false;
};

[[noreturn]] void refuse(const std::string& file_name, const std::string& what) {
  throw UserError(file_name + ": " + what, kDamaged);
}

std::string_view header_text(std::span<const std::byte> file, const std::string& file_name) {
  const std::string_view all(reinterpret_cast<const char*>(file.data()), file.size());
  refuse_lfs_pointer(all, file_name);
  const std::string size = std::to_string(file.size()) + " bytes";
  if (file.size() < kLengthBytes)
    refuse(file_name, "a safetensors file begins with 8 bytes of header length; this one has " + size);
  uint64_t length = 0;
  for (size_t i = 0; i < kLengthBytes; ++i) length |= static_cast<uint64_t>(file[i]) << (8 * i);
  if (length > kLongestHeader) {
    refuse(file_name, "a safetensors header of " + std::to_string(length) + " bytes is announced; at most 100 MB are allowed");
  }
  if (length > file.size() - kLengthBytes) {
    refuse(file_name, "a header of " + std::to_string(length) + " bytes is announced, but the file has " + size);
  }
  const std::string_view text = all.substr(kLengthBytes, length);
  if (!is_utf8(text)) refuse(file_name, "the safetensors header is not UTF-8");
  return text;
}

// Bytes that the shape takes; throws when the product overflows or ends inside a byte.
uint64_t bytes_of(const TensorEntry& tensor, const std::string& file_name) {
  const auto* dtype =
      std::find_if(std::begin(kDtypes), std::end(kDtypes), [&](const Dtype& d) { return d.name == tensor.dtype; });
  const std::string where = "tensor " + sluice::quoted(tensor.name);
  if (dtype == std::end(kDtypes)) refuse(file_name, where + " has the unknown dtype " + sluice::quoted(tensor.dtype));
  uint64_t bits = dtype->bits;
  for (const int64_t size : tensor.shape) {
    if (__builtin_mul_overflow(bits, static_cast<uint64_t>(size), &bits)) {
      refuse(file_name, where + " has a shape with more elements than memory can hold");
    }
  }
  if (bits % 8 != 0) refuse(file_name, where + " of dtype " + tensor.dtype + " ends inside a byte");
  return bits / 8;
}

// Orders the tensors by their data, checks that it covers `data_bytes` exactly, and makes offsets count from the start of the
// file.
void place_data(std::vector<TensorEntry>& tensors, size_t data_begin, size_t data_bytes, const std::string& file_name) {
  std::sort(tensors.begin(), tensors.end(), [](const TensorEntry& a, const TensorEntry& b) {
    return std::tie(a.begin, a.end, a.name) < std::tie(b.begin, b.end, b.name);
  });
  size_t expected = 0;
  for (TensorEntry& tensor : tensors) {
    const std::string where = "tensor " + sluice::quoted(tensor.name);
    const std::string offsets = "[" + std::to_string(tensor.begin) + ", " + std::to_string(tensor.end) + "]";
    if (tensor.begin != expected || tensor.end < tensor.begin) {
      refuse(file_name, where + " has data_offsets " + offsets + "; expected to begin at " + std::to_string(expected) +
                            ", where the tensor before it ends");
    }
    const uint64_t bytes = bytes_of(tensor, file_name);
    if (bytes != tensor.end - tensor.begin) {
      refuse(file_name,
             where + " has data_offsets " + offsets + ", but its shape and dtype take " + std::to_string(bytes) + " bytes");
    }
    expected = tensor.end;
  }
  if (expected != data_bytes) {
    refuse(file_name, "the tensors take " + std::to_string(expected) + " bytes of data, but " + std::to_string(data_bytes) +
                          " follow the header");
  }
  for (TensorEntry& tensor : tensors) {
    tensor.begin += data_begin;
    tensor.end += data_begin;
  }
}

}  // namespace

std::vector<TensorEntry> parse_safetensors_header(std::span<const std::byte> file, const std::string& file_name) {
  const std::string_view text = header_text(file, file_name);
  HeaderReader reader;
  if (!Json::sax_parse(text, &reader)) refuse(file_name, "safetensors header: " + reader.problem);
  for (TensorEntry& tensor : reader.tensors) {
    const auto checksum = reader.checksums.find(tensor.name);
    if (checksum != reader.checksums.end()) tensor.checksum = checksum->second;
  }
  const size_t data_begin = kLengthBytes + text.size();
  place_data(reader.tensors, data_begin, file.size() - data_begin, file_name);
  return std::move(reader.tensors);
}

}  // namespace sluice::models
