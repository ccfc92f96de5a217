#include "comm/near_memory.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <vector>

namespace sluice::comm::near_memory_test {
namespace {

/// A process that has made its sample and waits to be killed.
class OtherProcess {
 public:
  OtherProcess() {
    std::array<int, 2> pipe{};
    EXPECT_EQ(::pipe(pipe.data()), 0);
    process_ = ::fork();
    if (process_ == 0) {
      let_siblings_read();
      const OwnSample own;
      const MemorySample sample = own.sample();
      if (::write(pipe[1], &sample, sizeof sample) != sizeof sample) ::_exit(1);
      while (true) ::pause();
    }
    EXPECT_EQ(::read(pipe[0], &sample_, sizeof sample_), static_cast<ssize_t>(sizeof sample_));
    for (const int end : pipe) ::close(end);
  }
  ~OtherProcess() { end(); }
  OtherProcess(const OtherProcess&) = delete;
  OtherProcess& operator=(const OtherProcess&) = delete;

  const MemorySample& sample() const { return sample_; }
  void end() {
    if (process_ <= 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = -1;
  }

 private:
  pid_t process_ = -1;
  MemorySample sample_;
};

TEST(NearMemory, OfAnotherProcessIsReadWhileItLives) {
  OtherProcess other;
  EXPECT_NE(other.sample().process, static_cast<uint64_t>(::getpid()));
  EXPECT_TRUE(can_read(other.sample()));
  other.end();
  EXPECT_FALSE(can_read(other.sample()));
}

// A process of the same number in another container, say.
TEST(NearMemory, OfWhoHasOtherBytesThereIsNotTaken) {
  const OwnSample own;
  MemorySample sample = own.sample();
  EXPECT_TRUE(can_read(sample));
  ++sample.bytes;
  EXPECT_FALSE(can_read(sample));
  EXPECT_FALSE(can_read({}));
}

TEST(NearMemory, ThatIsGoneInPartIsNotRead) {
  const auto page = static_cast<size_t>(::sysconf(_SC_PAGESIZE));
  void* const pages = ::mmap(nullptr, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(pages, MAP_FAILED);
  std::memset(pages, 7, 2 * page);
  const auto process = static_cast<uint64_t>(::getpid()), address = reinterpret_cast<uint64_t>(pages);
  std::vector<char> bytes(2 * page);
  EXPECT_TRUE(read_memory(process, address, bytes.data(), 2 * page));
  EXPECT_EQ(bytes, std::vector<char>(2 * page, 7));
  ASSERT_EQ(::munmap(static_cast<char*>(pages) + page, page), 0);
  EXPECT_FALSE(read_memory(process, address, bytes.data(), 2 * page));
  ASSERT_EQ(::munmap(pages, page), 0);
}

}  // namespace
}  // namespace sluice::comm::near_memory_test
