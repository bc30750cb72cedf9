import { libc } from './libc.ts';

/** malloc.h */
const M_MMAP_THRESHOLD = -3;
const LARGE_BYTES = 64 * 1024;

/**
 * Has the C library give freed memory back to the kernel: blocks of 64 KiB and more become mappings of their own.
 *
 * glibc raises that limit up to 32 MiB whenever a larger block is freed (mallopt(3)), after which the buffers of watches
 * and restores come from its heaps, where one small block that lives keeps megabytes resident. Other C libraries do as they
 * always do.
 */
export function returnFreedMemory(): void {
  libc().mallopt(M_MMAP_THRESHOLD, LARGE_BYTES);
}
