#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "text/tokenizer/token_model.h"
#include "text/tokenizer/tokenizer_file.h"

namespace sluice::text {

class JsonPart;

/// The file of a tokenizer in a model folder: tokenizer.json, else a model of SentencePiece, else the tokenizer.json that is
/// missing. A file is itself.
std::filesystem::path tokenizer_file_in(const std::filesystem::path& folder_or_file);

/// A tokenizer from a Hugging Face tokenizer.json: byte-pair encoding, byte-level (GPT-2, Llama 3, Qwen, Falcon, OLMo) or in
/// SentencePiece's manner (Llama 2, Mistral, Gemma, Phi-3), Unigram (T5, XLM-R, ALBERT), WordPiece (BERT) or WordLevel (one token
/// a word). Gives the ids and texts of the `tokenizers` package; from a model of SentencePiece alone its ids.
/// Immutable after load: const use from many threads.
///
/// Not supported, and refused by name at load: dropout, and the steps that the error lists. Characters are classified,
/// lower-cased and normalised by the package's own tables, whatever Unicode the installed Oniguruma and utf8proc know
/// (text/unicode/unicode.h); only scripts and rarer properties in regular expressions (\p{Han}) are Oniguruma's own.
class Tokenizer {
 public:
  /// `folder_or_file`: a model folder, its tokenizer.json, or a model of SentencePiece (*.model). Reads tokenizer_config.json
  /// beside it when there is one.
  /// Throws UserError naming file and key for whatever is missing, malformed or not supported, and for a token that only the
  /// files beside it name, which transformers would add.
  static Tokenizer load(const std::filesystem::path& folder_or_file);

  /// The ids of `utf8`. Added tokens are recognised in the text. With `add_special` the special tokens that the file's template
  /// puts around a text are added. Bytes that are not UTF-8 count as U+FFFD, one for each broken sequence. Bytes that no token
  /// stands for are dropped, as in the reference; see uncovered_bytes(). Throws UserError for a text
  /// longer than 512 MiB, and when a pattern of the file backtracks or a step of it multiplies the text without bound.
  std::vector<int64_t> encode(std::string_view utf8, bool add_special = false) const;

  /// Memory that one caller may reuse from text to text, one thread at a time: known words are then encoded once.
  using Workspace = TokenModel::Workspace;
  std::vector<int64_t> encode(std::string_view utf8, bool add_special, Workspace& workspace) const;

  /// The text of `ids`; always UTF-8, with U+FFFD where tokens hold part of a character. Ids without a token have no text: models
  /// pad their embeddings. With `skip_special` special tokens are left out. StreamDecoder gives the same bit by bit.
  std::string decode(std::span<const int64_t> ids, bool skip_special = false) const;

  /// One more than the largest id: the least number of rows of an embedding.
  int64_t vocab_size() const { return static_cast<int64_t>(tokens_.size()); }

  /// `token` as the vocabulary spells it ("Ġthe"). An added token that is looked for in normalised text has its id under its own
  /// spelling, and back comes the normalised one, as in the reference.
  std::optional<int64_t> token_to_id(std::string_view token) const;
  std::optional<std::string> id_to_token(int64_t id) const;
  bool is_special(int64_t id) const;

  /// Whether it is an added token that takes in all white space behind it ("rstrip"), for which then no token stands.
  bool takes_space_behind(int64_t id) const;

  /// The bytes that `id` stands for in the midst of a text, which may be part of a character; empty when no token has this id.
  std::string_view token_bytes(int64_t id) const;

  /// The bytes that no token stands for, in order. Empty for most tokenizers; not for Falcon's, nor for a toy's. Where the
  /// vocabulary is of characters: bytes of ASCII characters, and bytes that no fallback token stands for.
  const std::string& uncovered_bytes() const { return uncovered_bytes_; }

  /// The "eos_token" of tokenizer_config.json, if it names one.
  std::optional<int64_t> end_of_sequence() const { return end_of_sequence_; }

 private:
  Tokenizer(TokenizerFile file, std::string name);

  friend class StreamDecoder;

  void encode_text(Piece piece, Workspace& workspace, std::vector<int64_t>& ids) const;
  const TokenizerFile::Token* find(int64_t id) const;
  const TokenizerFile::Token* find_decoded(int64_t id, bool skip_special) const;
  void read_config(const JsonPart& config);

  std::string name_;                          // the file, for messages
  std::vector<TokenizerFile::Token> tokens_;  // [id]
  std::unordered_map<std::string, int64_t> ids_;
  Normalizer normalizer_;
  PreTokenizer pre_tokenizer_;
  AddedTokenFinder verbatim_tokens_;    // looked for in the text as it is
  AddedTokenFinder normalized_tokens_;  // looked for after normalisation
  TokenModel model_;
  std::string uncovered_bytes_;
  Decoder decoder_;
  TextFrame frame_;
  std::optional<int64_t> end_of_sequence_;
};

}  // namespace sluice::text
