#include "text/tokenizer/sentencepiece_file.h"

#include <bit>
#include <cmath>
#include <string_view>
#include <unordered_set>

#include "base/error.h"
#include "base/files/file.h"
#include "base/text/strings.h"
#include "text/tokenizer/protobuf.h"

namespace sluice::text {
namespace {

int64_t signed_value(const ProtobufReader::Field& field) { return static_cast<int32_t>(field.value); }

SentencePieceFile::Piece read_piece(std::string_view message, const std::string& where) {
  SentencePieceFile::Piece piece;
  ProtobufReader fields(message, where);
  while (const auto field = fields.next()) {
    if (field->number == 1) piece.text = field->bytes;
    if (field->number == 2) piece.score = std::bit_cast<float>(static_cast<uint32_t>(field->value));
    if (field->number == 3) piece.kind = static_cast<SentencePieceFile::Kind>(field->value);
  }
  return piece;
}

void read_training(std::string_view message, const std::string& where, SentencePieceFile& file) {
  ProtobufReader fields(message, where);
  while (const auto field = fields.next()) {
    if (field->number == 3) file.model = static_cast<SentencePieceFile::Model>(field->value);
    if (field->number == 24) file.blank_is_suffix = field->value != 0;
    if (field->number == 35) file.byte_fallback = field->value != 0;
    if (field->number == 41) file.begin = signed_value(*field);
    if (field->number == 42) file.end = signed_value(*field);
  }
}

void read_normalizer(std::string_view message, const std::string& where, SentencePieceFile& file) {
  ProtobufReader fields(message, where);
  while (const auto field = fields.next()) {
    if (field->number == 2) file.charsmap = field->bytes;
    if (field->number == 3) file.add_dummy_prefix = field->value != 0;
    if (field->number == 4) file.remove_extra_whitespaces = field->value != 0;
    if (field->number == 5) file.escape_whitespaces = field->value != 0;
  }
}

}  // namespace

SentencePieceFile SentencePieceFile::read(const std::filesystem::path& path) {
  const std::string bytes = read_file(path), where = path.string();
  SentencePieceFile file;
  ProtobufReader fields(bytes, where);
  while (const auto field = fields.next()) {
    if (!field->is_bytes) continue;
    if (field->number == 1) file.pieces.push_back(read_piece(field->bytes, where));
    if (field->number == 2) read_training(field->bytes, where, file);
    if (field->number == 3) read_normalizer(field->bytes, where, file);
  }
  if (file.pieces.empty()) throw UserError(where + ": this is no model of SentencePiece: it has no pieces");
  std::unordered_set<std::string_view> seen;
  for (const Piece& piece : file.pieces) {
    const auto fail = [&](const char* what) { throw UserError(where + ": piece " + sluice::quoted(piece.text) + " " + what); };
    if (!is_utf8(piece.text)) fail("is not UTF-8");
    if (!std::isfinite(piece.score)) fail("has a score that is no number");
    if (!seen.insert(piece.text).second) fail("is there twice");
  }
  return file;
}

}  // namespace sluice::text
