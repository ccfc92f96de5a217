#include "cli/terminal/terminal.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>

#include "base/text/printable.h"

namespace sluice::cli {
namespace {

constexpr const char* kOtherScreen = "\033[?1049h\033[?25l";
constexpr const char* kFirstScreen = "\033[?25h\033[?1049l";
constexpr const char* kHome = "\033[H";
constexpr const char* kClearRestOfLine = "\033[K";
constexpr const char* kClearBelow = "\033[J";

}  // namespace

TerminalSize terminal_size(std::FILE* stream) {
  TerminalSize known;
  winsize size{};
  if (::ioctl(::fileno(stream), TIOCGWINSZ, &size) != 0) return known;
  if (size.ws_col > 0) known.columns = size.ws_col;
  if (size.ws_row > 0) known.rows = size.ws_row;
  return known;
}

void print_text(std::string_view text, std::FILE* stream) {
  const bool escaped = ::isatty(::fileno(stream)) == 1;
  const std::string shown = escaped ? printable(text, Lines::kKept) : std::string(text);
  std::fwrite(shown.data(), 1, shown.size(), stream);
}

std::string bar(double done, double all, size_t width) {
  const double share = all > 0 ? std::clamp(done / all, 0.0, 1.0) : 0;
  const auto filled = static_cast<size_t>(share * static_cast<double>(width));
  return std::string(filled, '#') + std::string(width - filled, '-');
}

FullScreen::FullScreen() {
  keyboard_ = ::tcgetattr(STDIN_FILENO, &before_) == 0;
  if (keyboard_) {
    termios quiet = before_;
    quiet.c_lflag &= ~static_cast<tcflag_t>(ICANON | ECHO);
    ::tcsetattr(STDIN_FILENO, TCSANOW, &quiet);
  }
  std::fputs(kOtherScreen, stdout);
  std::fflush(stdout);
}

FullScreen::~FullScreen() {
  std::fputs(kFirstScreen, stdout);
  std::fflush(stdout);
  if (keyboard_) ::tcsetattr(STDIN_FILENO, TCSANOW, &before_);
}

void FullScreen::show(std::string_view text) {
  std::string frame = kHome;
  for (size_t rows = terminal_size().rows; rows > 0 && !text.empty(); --rows) {
    const size_t end = std::min(text.find('\n'), text.size());
    frame += text.substr(0, end);
    frame += kClearRestOfLine;
    text.remove_prefix(std::min(end + 1, text.size()));
    if (rows > 1 && !text.empty()) frame += "\r\n";  // none after the last row: it would scroll
  }
  frame += kClearBelow;
  std::fputs(frame.c_str(), stdout);
  std::fflush(stdout);
}

char FullScreen::wait_for_key(std::chrono::milliseconds limit) {
  pollfd keys{.fd = keyboard_ ? STDIN_FILENO : -1, .events = POLLIN, .revents = 0};  // -1: only waits
  if (::poll(&keys, 1, static_cast<int>(limit.count())) <= 0) return 0;
  char key = 0;
  return ::read(STDIN_FILENO, &key, 1) == 1 ? key : 'q';  // the terminal is gone
}

}  // namespace sluice::cli
