// SPDX-License-Identifier: Apache-2.0
// Tells the race checker how threads of the host hand on to each other. These functions stand
// before the C library's in whatever is linked with this file; they call it and say what they
// synchronize. What threads pass on by atomic variables alone is not seen, and neither are locks
// that never reach the C library.
#include <dlfcn.h>
#include <pthread.h>
#include <semaphore.h>

#include <cstdlib>
#include <ctime>
#include <memory>

#include "sim/sim.hpp"

using tessera::sim::acquired;
using tessera::sim::released;

namespace {

/// The C library's function. Condition variables have an older kind with a version of its own.
template <class Function>
Function next_of(const char* name, const char* version = nullptr) {
  void* found = version != nullptr ? dlvsym(RTLD_NEXT, name, version) : nullptr;
  if (found == nullptr) found = dlsym(RTLD_NEXT, name);
  if (found == nullptr) std::abort();
  return reinterpret_cast<Function>(found);
}

/// Found at the first call, without a lock: all who look find the same.
#define TESSERA_NEXT(function, ...)                        \
  static decltype(&function) next = nullptr;               \
  if (__atomic_load_n(&next, __ATOMIC_RELAXED) == nullptr) \
  __atomic_store_n(&next, next_of<decltype(&function)>(__VA_ARGS__), __ATOMIC_RELAXED)

constexpr const char* conditions = "GLIBC_2.3.2";

int taken(int result, const void* object) {
  if (result == 0) acquired(object);
  return result;
}

/// A wait on a condition lets go of the mutex and takes it again, whatever the result. The signal
/// itself orders nothing: what it tells of is guarded by the mutex.
template <class Wait>
int wait_on(pthread_mutex_t* mutex, const Wait& wait) {
  released(mutex);
  const int result = wait();
  acquired(mutex);
  return result;
}

struct Start {
  void* (*function)(void*);
  void* argument;
};

/// What a thread knows at its end goes to who joins it.
struct AtEnd {
  ~AtEnd() { released(reinterpret_cast<const void*>(pthread_self())); }
};

void* begin_thread(void* given) {
  const std::unique_ptr<Start> start(static_cast<Start*>(given));
  const AtEnd at_end;
  acquired(start.get());
  return start->function(start->argument);
}

}  // namespace

extern "C" {

int pthread_mutex_lock(pthread_mutex_t* mutex) noexcept {
  TESSERA_NEXT(pthread_mutex_lock, "pthread_mutex_lock");
  return taken(next(mutex), mutex);
}

int pthread_mutex_trylock(pthread_mutex_t* mutex) noexcept {
  TESSERA_NEXT(pthread_mutex_trylock, "pthread_mutex_trylock");
  return taken(next(mutex), mutex);
}

int pthread_mutex_timedlock(pthread_mutex_t* mutex, const timespec* until) noexcept {
  TESSERA_NEXT(pthread_mutex_timedlock, "pthread_mutex_timedlock");
  return taken(next(mutex, until), mutex);
}

int pthread_mutex_clocklock(pthread_mutex_t* mutex, clockid_t clock,
                            const timespec* until) noexcept {
  TESSERA_NEXT(pthread_mutex_clocklock, "pthread_mutex_clocklock");
  return taken(next(mutex, clock, until), mutex);
}

int pthread_mutex_unlock(pthread_mutex_t* mutex) noexcept {
  TESSERA_NEXT(pthread_mutex_unlock, "pthread_mutex_unlock");
  released(mutex);
  return next(mutex);
}

int pthread_rwlock_rdlock(pthread_rwlock_t* lock) noexcept {
  TESSERA_NEXT(pthread_rwlock_rdlock, "pthread_rwlock_rdlock");
  return taken(next(lock), lock);
}

int pthread_rwlock_tryrdlock(pthread_rwlock_t* lock) noexcept {
  TESSERA_NEXT(pthread_rwlock_tryrdlock, "pthread_rwlock_tryrdlock");
  return taken(next(lock), lock);
}

int pthread_rwlock_wrlock(pthread_rwlock_t* lock) noexcept {
  TESSERA_NEXT(pthread_rwlock_wrlock, "pthread_rwlock_wrlock");
  return taken(next(lock), lock);
}

int pthread_rwlock_trywrlock(pthread_rwlock_t* lock) noexcept {
  TESSERA_NEXT(pthread_rwlock_trywrlock, "pthread_rwlock_trywrlock");
  return taken(next(lock), lock);
}

int pthread_rwlock_unlock(pthread_rwlock_t* lock) noexcept {
  TESSERA_NEXT(pthread_rwlock_unlock, "pthread_rwlock_unlock");
  released(lock);
  return next(lock);
}

int pthread_cond_wait(pthread_cond_t* condition, pthread_mutex_t* mutex) {
  TESSERA_NEXT(pthread_cond_wait, "pthread_cond_wait", conditions);
  return wait_on(mutex, [&] { return next(condition, mutex); });
}

int pthread_cond_timedwait(pthread_cond_t* condition, pthread_mutex_t* mutex,
                           const timespec* until) {
  TESSERA_NEXT(pthread_cond_timedwait, "pthread_cond_timedwait", conditions);
  return wait_on(mutex, [&] { return next(condition, mutex, until); });
}

int pthread_cond_clockwait(pthread_cond_t* condition, pthread_mutex_t* mutex, clockid_t clock,
                           const timespec* until) {
  TESSERA_NEXT(pthread_cond_clockwait, "pthread_cond_clockwait");
  return wait_on(mutex, [&] { return next(condition, mutex, clock, until); });
}

int sem_post(sem_t* semaphore) noexcept {
  TESSERA_NEXT(sem_post, "sem_post");
  released(semaphore);
  return next(semaphore);
}

int sem_wait(sem_t* semaphore) {
  TESSERA_NEXT(sem_wait, "sem_wait");
  return taken(next(semaphore), semaphore);
}

int sem_trywait(sem_t* semaphore) noexcept {
  TESSERA_NEXT(sem_trywait, "sem_trywait");
  return taken(next(semaphore), semaphore);
}

int sem_timedwait(sem_t* semaphore, const timespec* until) {
  TESSERA_NEXT(sem_timedwait, "sem_timedwait");
  return taken(next(semaphore, until), semaphore);
}

int pthread_barrier_wait(pthread_barrier_t* barrier) noexcept {
  TESSERA_NEXT(pthread_barrier_wait, "pthread_barrier_wait");
  released(barrier);
  const int result = next(barrier);
  acquired(barrier);
  return result;
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*function)(void*),
                   void* argument) noexcept {
  TESSERA_NEXT(pthread_create, "pthread_create");
  auto* const start = new Start{function, argument};
  released(start);
  const int result = next(thread, attributes, &begin_thread, start);
  if (result != 0) delete start;
  return result;
}

int pthread_join(pthread_t thread, void** value) {
  TESSERA_NEXT(pthread_join, "pthread_join");
  return taken(next(thread, value), reinterpret_cast<const void*>(thread));
}

}  // extern "C"
