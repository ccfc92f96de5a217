#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace sluice::text {

class JsonPart;

/// One step that turns tokens into text, at work on one text. Tokens come in fragments; each ends with end_token().
class DecoderStep {
 public:
  virtual ~DecoderStep() = default;

  virtual void fragment(std::string_view text) = 0;
  virtual void end_token() = 0;
  virtual void finish() = 0;  // after the last token
};

/// The "decoder" of a tokenizer.json: how tokens become text. Immutable.
/// Every step takes its tokens one by one and hands on at once whatever later tokens cannot change.
class Decoder {
 public:
  Decoder() = default;

  /// `part` may be null: then tokens are joined with blanks. Throws UserError for an unknown type or too many steps.
  explicit Decoder(const JsonPart& part);

  /// Whether the text is simply the bytes of the tokens one after the other.
  bool is_byte_level() const;

  /// The bytes that a token stands for in the midst of a text.
  std::string bytes_of(std::string_view token) const;

  /// One text in the making.
  class Run {
   public:
    explicit Run(const Decoder& decoder);
    Run(const Run&) = delete;  // its steps know each other

    /// Appends to `text` what is now sure.

    void token(std::string_view token, std::string& text);
    /// Appends the rest.
    void finish(std::string& text);

   private:
    std::vector<std::unique_ptr<DecoderStep>> steps_;  // the last writes to text_, each other to the next
    std::string text_;
    size_t fed_ = 0;  // bytes of all tokens
  };

 private:
  struct Description;
  void read(const JsonPart& part);

  bool joins_with_blanks_ = true;
  std::vector<std::shared_ptr<const Description>> steps_;
};

}  // namespace sluice::text
