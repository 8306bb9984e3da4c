#include "bench/complexity/counted_new.h"

#include <atomic>
#include <cstdlib>
#include <new>

namespace {

std::atomic<std::uint64_t> allocations = 0;
std::atomic<std::uint64_t> bytes = 0;

void* counted(std::size_t size, std::size_t alignment) {
  ++allocations;
  bytes += size;
  const std::size_t room = size == 0 ? 1 : size;
  void* const memory =
      alignment <= __STDCPP_DEFAULT_NEW_ALIGNMENT__
          ? std::malloc(room)
          : std::aligned_alloc(alignment, (room + alignment - 1) / alignment * alignment);
  if (memory == nullptr) {
    throw std::bad_alloc();
  }
  return memory;
}

}  // namespace

shunt::test::HeapUse shunt::test::heap_use() { return {allocations, bytes}; }

// The arrays and the nothrow forms of the library call these.
void* operator new(std::size_t size) { return counted(size, 0); }
void* operator new(std::size_t size, std::align_val_t alignment) {
  return counted(size, static_cast<std::size_t>(alignment));
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
