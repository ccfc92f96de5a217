#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace sluice::text {

/// What a model file of SentencePiece says (its sentencepiece_model.proto), as far as it decides how text becomes ids.
struct SentencePieceFile {
  enum class Kind { kNormal = 1, kUnknown = 2, kControl = 3, kUserDefined = 4, kUnused = 5, kByte = 6 };
  struct Piece {
    std::string text;
    float score = 0;
    Kind kind = Kind::kNormal;
  };
  enum class Model { kUnigram = 1, kBpe = 2, kWord = 3, kCharacter = 4 };

  std::vector<Piece> pieces;  // [id]
  Model model = Model::kUnigram;
  bool byte_fallback = false;
  bool blank_is_suffix = false;  // "treat_whitespace_as_suffix"
  int64_t begin = 1;             // ids; -1: there is none
  int64_t end = 2;
  std::string charsmap;
  bool add_dummy_prefix = true;
  bool remove_extra_whitespaces = true;
  bool escape_whitespaces = true;

  /// Throws UserError naming the file when it cannot be read or is no such model. Texts of pieces are UTF-8 and all
  /// different, scores are finite.
  static SentencePieceFile read(const std::filesystem::path& path);
};

}  // namespace sluice::text
