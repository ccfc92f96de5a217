#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/json/json.h"

// What data/ asks of libsluice_columnar.so, the only part that knows Apache Arrow (columnar/). It is loaded when a file needs
// it.
namespace sluice::data {

enum class ColumnarFormat {
  kParquet,
  kArrowFile,    // which Feather's second version is
  kArrowStream,  // what save_to_disk() of Hugging Face's datasets writes
};

/// A field that is asked for. "a.b" is the column of that name, or else the member b of the struct a.
struct ColumnarField {
  std::string name;
  bool may_be_null = false;     // a null needs no second look
  bool may_be_missing = false;  // nor does a file without such a column, nor a null in a struct on the way to it
};

/// What the type of a column says of all values of a field.
enum class ColumnKind {
  kMissing,   // there is no such column
  kText,      // strings or numbers
  kMessages,  // lists of structs with a role that is a string, and a content that is a string, a list or not there
  kOther,
};

/// A column of a file. `json` is what its values are in JSON; binary: none of them is read, and all are null there.
struct FileColumn {
  std::string name;
  Json::value_t json = Json::value_t::null;
  std::string type;  // as Arrow calls it: "duration[s]"
};
using Columns = std::vector<FileColumn>;

/// Some rows as JSON objects, of which each ends with a line break and has no other.
struct ColumnarRows {
  std::string text;
  std::vector<uint32_t> lengths;  // [rows] bytes without the line break
  /// [rows] True: the row is valid JSON within the limits of RowParser, none of its texts is null, and every field of the kind
  /// kMessages is a conversation (see messages.h), but for what ColumnarField allows. False: nothing is known.
  std::vector<bool> proved;
};

/// The rows of one file in their order, of which only the columns are decoded that are asked for; all, if no field is.
///
/// Memory: some megabytes, and what a batch of the file takes, at most 1 GiB together. Throws UserError naming the file and the
/// row where it is damaged. The file must not change while it is open. Not thread-safe.
class ColumnarFile {
 public:
  virtual ~ColumnarFile() = default;

  /// Of the file, whatever was asked for.
  virtual const Columns& columns() const = 0;

  /// [fields] of those that were asked for.
  virtual const std::vector<ColumnKind>& kinds() const = 0;

  /// The next rows, at least one, in place of what `rows` held. False: there are no more. A row that is longer than kLongestRow
  /// is cut off somewhere after that.
  virtual bool next(ColumnarRows& rows) = 0;
};

/// What the library gives, by the name below.
struct ColumnarLibrary {
  int version = 0;
  std::unique_ptr<ColumnarFile> (*open)(const std::filesystem::path& path, ColumnarFormat format,
                                        const std::vector<ColumnarField>& fields) = nullptr;
};

inline constexpr int kColumnarVersion = 2;  // of what is in this header
inline constexpr const char* kColumnarEntry = "sluice_columnar_library";

}  // namespace sluice::data
