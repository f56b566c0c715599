// SPDX-License-Identifier: Apache-2.0
#include "guard.hpp"

#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "device_memory.hpp"
#include "sim/sim.hpp"

namespace tessera::cudart {
namespace {

thread_local int opened __attribute__((tls_model("initial-exec"))) = 0;
thread_local const char* running __attribute__((tls_model("initial-exec"))) = nullptr;
struct sigaction before {};

/// -1: pkey_mprotect() is then mprotect(). A thread's right to a new key is none, but for the
/// thread that makes it: so it is, too.
int make_key() {
  if (guard() != Guard::keys) return -1;
  const int made = pkey_alloc(0, PKEY_DISABLE_ACCESS);
  if (made >= 0) return made;
  std::fprintf(
      stderr,
      "tessera-sim: TESSERA_SIM_GUARD is \"keys\", and this machine has no protection keys\n");
  std::_Exit(3);
}

int key() {
  static const int made = make_key();
  return made;
}

/// What opening and closing do to the thread, or to all.
void open_memory() {
  if (guard() == Guard::keys) pkey_set(key(), 0);
  if (guard() == Guard::process) DeviceMemory::get().open();
}
void close_memory() {
  if (guard() == Guard::keys) pkey_set(key(), PKEY_DISABLE_ACCESS);
  if (guard() == Guard::process) DeviceMemory::get().close();
}

void protect(std::byte* memory, std::size_t bytes, int rights) {
  if (pkey_mprotect(memory, bytes, rights, key()) == 0) return;
  std::fprintf(stderr, "tessera-sim: pkey_mprotect of %zu bytes: %s\n", bytes,
               std::strerror(errno));
  std::abort();
}

/// Text made in a handler of signals, where nothing may allocate.
class Line {
 public:
  void add(const char* text) {
    while (*text != '\0' && length_ < sizeof text_ - 1) text_[length_++] = *text++;
  }
  void add_number(std::uintptr_t number, unsigned base) {
    char digits[32];
    char* first = digits + sizeof digits - 1;
    *first = '\0';
    do *--first = "0123456789abcdef"[number % base];
    while ((number /= base) != 0);
    add(first);
  }
  void print() {
    text_[length_++] = '\n';
    static_cast<void>(!write(STDERR_FILENO, text_, length_));
  }

 private:
  char text_[512];
  std::size_t length_ = 0;
};

bool is_write(const void* context) {
#if defined(__x86_64__)
  return (static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2) != 0;
#else
  return false;
#endif
}

void add_place(Line& line, std::uintptr_t address) {
  const Allocation around =
      DeviceMemory::get().find_in_handler(reinterpret_cast<const void*>(address));
  if (around.bytes == 0) return line.add(", which is in no allocation");
  line.add(", byte ");
  line.add_number(address - reinterpret_cast<std::uintptr_t>(around.data), 10);
  line.add(" of an allocation of ");
  line.add_number(around.bytes, 10);
  line.add(" bytes at 0x");
  line.add_number(reinterpret_cast<std::uintptr_t>(around.data), 16);
}

void report(std::uintptr_t address, bool writes) {
  Line line;
  line.add("tessera-sim: ");
  line.add(opened == 0 ? "the host" : running == nullptr ? "a task" : running);
  line.add(writes ? " writes" : " reads");
  line.add(" device memory at 0x");
  line.add_number(address, 16);
  add_place(line, address);
  line.add(opened == 0 ? "; copy it, or let a task of a stream do so" : "");
  line.print();
}

/// Returning runs the faulty instruction again, under the former handler.
void on_fault(int signal, siginfo_t* info, void* context) {
  if (sim::is_device_pointer(info->si_addr))
    report(reinterpret_cast<std::uintptr_t>(info->si_addr), is_write(context));
  sigaction(signal, &before, nullptr);
}

}  // namespace

Guard guard() { return sim::settings().guard; }

void grant(std::byte* memory, std::size_t bytes) { protect(memory, bytes, PROT_READ | PROT_WRITE); }
void revoke(std::byte* memory, std::size_t bytes) { protect(memory, bytes, PROT_NONE); }

void report_faults() {
  struct sigaction action {};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, &before);
}

void set_task_name(const char* name) { running = name; }
const char* task_name() { return running; }

}  // namespace tessera::cudart

namespace tessera::sim {

bool has_guard() { return cudart::guard() != cudart::Guard::none; }

DeviceMemoryOpen::DeviceMemoryOpen() {
  if (cudart::opened++ == 0) cudart::open_memory();
}
DeviceMemoryOpen::~DeviceMemoryOpen() {
  if (--cudart::opened == 0) cudart::close_memory();
}

}  // namespace tessera::sim
