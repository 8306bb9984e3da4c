#include "base/memory.h"

#include <malloc.h>

namespace shunt {

void take_memory_in_large_steps() {
  constexpr int kMegabyte = 1 << 20;
  // Where one of these is refused, the default does.
  (void)::mallopt(M_TOP_PAD, 4 * kMegabyte);
  (void)::mallopt(M_MMAP_THRESHOLD, 32 * kMegabyte);
  (void)::mallopt(M_TRIM_THRESHOLD, 64 * kMegabyte);
}

void give_back_unused_memory() { (void)::malloc_trim(0); }  // whether anything was free to give

}  // namespace shunt
