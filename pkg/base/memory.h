// The memory of the process.
#pragma once

namespace shunt {

// Call first thing. The allocator takes memory in steps of megabytes, and keeps what is freed until
// give_back_unused_memory(): a first list of a large cluster would otherwise spend a tenth of its
// time in getting pages, giving them back and getting them again.
void take_memory_in_large_steps();

// Hands free pages back to the kernel. The allocator keeps what was freed for later; after a burst
// that does not come again, such as a first list, that would be most of the process. Takes
// milliseconds.
void give_back_unused_memory();

}  // namespace shunt
