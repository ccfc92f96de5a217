#include "nodes/scorers/code/seccomp_filter.h"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <vector>

namespace sluice::nodes {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_X86_64;
constexpr uint32_t kFirstOfOtherAbi = 0x40000000;  // x32: the same calls under other numbers
constexpr std::initializer_list<uint32_t> kOfThisArchitecture = {SYS_iopl, SYS_ioperm, SYS_modify_ldt, SYS_uselib};
#elif defined(__aarch64__)
constexpr uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
constexpr uint32_t kFirstOfOtherAbi = 0xffffffff;
constexpr std::initializer_list<uint32_t> kOfThisArchitecture = {};
#else
constexpr uint32_t kArchitecture = 0;
constexpr uint32_t kFirstOfOtherAbi = 0xffffffff;
constexpr std::initializer_list<uint32_t> kOfThisArchitecture = {};
#endif

// By number where the headers of the C library may be older than the call; from 424 on the numbers are those of all
// architectures.
constexpr std::initializer_list<uint32_t> kRefused = {
    // other processes
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, 438 /* pidfd_getfd */, 440 /* process_madvise */,
    // mounts and namespaces
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_unshare, SYS_setns, SYS_open_by_handle_at, SYS_name_to_handle_at,
    428 /* open_tree */, 429 /* move_mount */, 430 /* fsopen */, 431 /* fsconfig */, 432 /* fsmount */, 433 /* fspick */,
    442 /* mount_setattr */,
    // the kernel and the machine
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load,
    SYS_kexec_file_load, SYS_reboot, SYS_swapon, SYS_swapoff, SYS_acct, SYS_quotactl, SYS_syslog, SYS_settimeofday,
    SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime, SYS_personality, SYS_vhangup, SYS_nfsservctl, SYS_lookup_dcookie,
    SYS_fanotify_init, 425 /* io_uring_setup */, 426 /* io_uring_enter */, 427 /* io_uring_register */,
    // keys
    SYS_add_key, SYS_request_key, SYS_keyctl,
    // memory that no limit of a process counts
    SYS_memfd_create, 447 /* memfd_secret */, SYS_shmget, SYS_shmat, SYS_shmctl, SYS_msgget, SYS_semget, SYS_mq_open};

constexpr uint32_t kClone3 = 435;
constexpr uint32_t kNewNamespaces = 0x7e020080;  // CLONE_NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET, NEWTIME

class Program {
 public:
  void load(size_t offset) { add(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset)); }
  void answer(uint32_t what) { add(BPF_RET | BPF_K, what); }
  void refuse(uint32_t error) { answer(SECCOMP_RET_ERRNO | error); }

  /// What follows is passed over, as many instructions as that is, unless the loaded word is (has a bit of, is at least) `value`.
  void unless_equal_skip(uint32_t value, uint8_t count) { add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, count); }
  void unless_any_bit_skip(uint32_t value, uint8_t count) { add(BPF_JMP | BPF_JSET | BPF_K, value, 0, count); }
  void unless_at_least_skip(uint32_t value, uint8_t count) { add(BPF_JMP | BPF_JGE | BPF_K, value, 0, count); }
  void if_equal_skip(uint32_t value, uint8_t count) { add(BPF_JMP | BPF_JEQ | BPF_K, value, count, 0); }

  std::string bytes() const { return {reinterpret_cast<const char*>(code_.data()), code_.size() * sizeof(sock_filter)}; }

 private:
  void add(uint32_t operation, uint32_t value, uint8_t if_true = 0, uint8_t if_false = 0) {
    code_.push_back({static_cast<uint16_t>(operation), if_true, if_false, value});
  }

  std::vector<sock_filter> code_;
};

constexpr size_t kFirstArgument = offsetof(seccomp_data, args);  // its lower half: both architectures are little-endian

}  // namespace

std::string seccomp_filter() {
  if (kArchitecture == 0) return {};
  Program program;
  program.load(offsetof(seccomp_data, arch));
  program.if_equal_skip(kArchitecture, 1);
  program.answer(SECCOMP_RET_KILL_PROCESS);

  program.load(offsetof(seccomp_data, nr));
  program.unless_at_least_skip(kFirstOfOtherAbi, 1);
  program.refuse(ENOSYS);
  for (const auto& calls : {kRefused, kOfThisArchitecture}) {
    for (const uint32_t call : calls) {
      program.unless_equal_skip(call, 1);
      program.refuse(EPERM);
    }
  }
  program.unless_equal_skip(kClone3, 1);
  program.refuse(ENOSYS);  // its flags lie in memory, where no filter sees them; the C library goes on with clone

  program.unless_equal_skip(SYS_clone, 4);
  program.load(kFirstArgument);
  program.unless_any_bit_skip(kNewNamespaces, 1);
  program.refuse(EPERM);
  program.answer(SECCOMP_RET_ALLOW);

  program.unless_equal_skip(SYS_socket, 6);
  program.load(kFirstArgument);
  program.if_equal_skip(AF_UNIX, 3);
  program.if_equal_skip(AF_INET, 2);
  program.if_equal_skip(AF_INET6, 1);
  program.refuse(EAFNOSUPPORT);  // such as vsock, which no namespace holds back
  program.answer(SECCOMP_RET_ALLOW);

  program.answer(SECCOMP_RET_ALLOW);
  return program.bytes();
}

}  // namespace sluice::nodes
