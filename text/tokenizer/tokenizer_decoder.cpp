#include "text/tokenizer/tokenizer_decoder.h"

#include <functional>
#include <optional>

#include "base/text/strings.h"
#include "text/tokenizer/byte_level.h"
#include "text/tokenizer/decoder_steps.h"
#include "text/tokenizer/tokenizer_json.h"
#include "text/unicode/utf8.h"

namespace sluice::text {

// A step as the file says it: makes the one that works on a text.
struct Decoder::Description {
  enum class Kind { kByteLevel, kByteFallback, kFuse, kReplace, kStrip, kMetaspace, kSuffix, kWordPiece };
  Kind kind;
  std::optional<Matcher> matcher;
  std::string content;  // of Replace and Strip; the suffix or prefix
  std::string where;
  size_t start = 0;
  size_t stop = 0;
  MetaspaceSettings metaspace;
  bool cleanup = false;

  std::unique_ptr<DecoderStep> step(const size_t& fed, DecoderStep& next) const {
    switch (kind) {
      case Kind::kByteLevel:
        return byte_level_step(next);
      case Kind::kByteFallback:
        return byte_fallback_step(next);
      case Kind::kFuse:
        return fuse_step(next);
      case Kind::kReplace:
        return replace_step({*matcher, content, where, fed}, next);
      case Kind::kStrip:
        return strip_step(content, start, stop, next);
      case Kind::kMetaspace:
        return metaspace_step(metaspace, next);
      case Kind::kSuffix:
        return suffix_step(content, next);
      case Kind::kWordPiece:
        return word_piece_step(content, cleanup, next);
    }
    return nullptr;
  }
};

namespace {

constexpr size_t kMostDecoderSteps = 64;
constexpr const char* kDecoderTypes = "ByteLevel, ByteFallback, Fuse, Replace, Strip, Metaspace, BPEDecoder, WordPiece, Sequence";

size_t read_count(const JsonPart& part) {
  const int64_t count = part.integer();
  if (count < 0) part.fail("a number of characters was expected here");
  return static_cast<size_t>(count);
}

class Writer final : public DecoderStep {
 public:
  explicit Writer(std::string& text) : text_(text) {}
  void fragment(std::string_view text) override { text_ += text; }
  void end_token() override {}
  void finish() override {}

 private:
  std::string& text_;
};

}  // namespace

Decoder::Decoder(const JsonPart& part) {
  joins_with_blanks_ = part.is_null();
  if (!part.is_null()) read(part);
}

void Decoder::read(const JsonPart& part) {
  using enum Description::Kind;
  const std::string type = part.type();
  if (steps_.size() == kMostDecoderSteps) part.fail("the decoder has more than " + std::to_string(kMostDecoderSteps) + " steps");
  Description step{.kind = kFuse, .where = part.place()};
  if (type == "Sequence") {
    for (const JsonPart& element : part.at("decoders").elements()) read(element);
    return;
  }
  if (type == "ByteLevel") {
    step.kind = kByteLevel;
  } else if (type == "ByteFallback") {
    step.kind = kByteFallback;
  } else if (type == "Replace") {
    step.kind = kReplace;
    step.matcher = Matcher::read(part.at("pattern"));
    step.content = part.at("content").string();
  } else if (type == "Strip") {
    step.kind = kStrip;
    step.content = part.at("content").string();
    if (count_code_points(step.content) != 1) part.at("content").fail("one character was expected here");
    step.start = read_count(part.at("start"));
    step.stop = read_count(part.at("stop"));
  } else if (type == "Metaspace") {
    step.kind = kMetaspace;
    step.metaspace = MetaspaceSettings::read(part);
  } else if (type == "BPEDecoder") {
    step.kind = kSuffix;
    step.content = part.at("suffix").string();
    if (step.content.empty()) part.at("suffix").fail("a suffix of at least one character was expected here");
  } else if (type == "WordPiece") {
    step.kind = kWordPiece;
    step.content = part.at("prefix").string();
    step.cleanup = part.boolean_or("cleanup", true);
  } else if (type != "Fuse") {
    part.fail_unsupported("decoder type " + sluice::quoted(type), kDecoderTypes);
  }
  steps_.push_back(std::make_shared<const Description>(std::move(step)));
}

bool Decoder::is_byte_level() const {
  const auto is = [this](size_t i, Description::Kind kind) { return steps_[i]->kind == kind; };
  if (steps_.empty() || !is(0, Description::Kind::kByteLevel)) return false;
  for (size_t i = 1; i < steps_.size(); ++i) {
    if (!is(i, Description::Kind::kFuse)) return false;  // has no effect on one piece
  }
  return true;
}

std::string Decoder::bytes_of(std::string_view token) const {
  std::string bytes(token);
  const size_t fed = token.size();
  for (const auto& step : steps_) {
    if (step->kind == Description::Kind::kByteLevel) {
      bytes = from_byte_alphabet(bytes).value_or(bytes);
    } else if (const int byte = fallback_byte(bytes); step->kind == Description::Kind::kByteFallback && byte >= 0) {
      return std::string(1, static_cast<char>(byte));
    } else if (step->kind == Description::Kind::kReplace || step->kind == Description::Kind::kMetaspace ||
               step->kind == Description::Kind::kSuffix || step->kind == Description::Kind::kWordPiece) {
      std::string changed;
      Writer writer(changed);
      const auto run = step->step(fed, writer);
      run->end_token();  // an empty first token: this one is in the midst of a text
      run->fragment(bytes);
      run->end_token();
      if (step->kind == Description::Kind::kSuffix) {  // which holds it back until the next one
        run->fragment("");
        run->end_token();
      }
      bytes = changed;
    }
  }
  return bytes;
}

Decoder::Run::Run(const Decoder& decoder) {
  steps_.push_back(std::make_unique<Writer>(text_));
  if (decoder.joins_with_blanks_) steps_.push_back(join_step(*steps_.back()));
  for (auto step = decoder.steps_.rbegin(); step != decoder.steps_.rend(); ++step) {
    steps_.push_back((*step)->step(fed_, *steps_.back()));
  }
}

void Decoder::Run::token(std::string_view token, std::string& text) {
  fed_ += token.size();
  steps_.back()->fragment(token);
  steps_.back()->end_token();
  text += text_;
  text_.clear();
}

void Decoder::Run::finish(std::string& text) {
  steps_.back()->finish();
  text += text_;
  text_.clear();
}

}  // namespace sluice::text
