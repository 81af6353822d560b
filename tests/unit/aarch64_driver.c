// aarch64_driver.c -- runs one function of a kernel in a process of its own: driver FILE, which holds its parameter block and its memory.
//
// The file: i64 begin, end, count of blocks, count of words; per block i64 size and the bytes; per word i64 block (-1: a plain number) and
// u64 value (or offset in the block). The blocks are written back when the function is done.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

void ENTRY(const uint64_t* words, int64_t begin, int64_t end);

static void take(void* to, size_t size, FILE* file) {
  if (fread(to, 1, size, file) != size) exit(2);
}

int main(int count, char** arguments) {
  FILE* file = count == 2 ? fopen(arguments[1], "r+b") : NULL;
  if (file == NULL) return 1;
  int64_t head[4];
  take(head, sizeof head, file);
  char** blocks = calloc((size_t)head[2] + 1, sizeof *blocks);
  int64_t* sizes = calloc((size_t)head[2] + 1, sizeof *sizes);
  for (int64_t k = 0; k < head[2]; k++) {
    take(&sizes[k], sizeof sizes[k], file);
    blocks[k] = aligned_alloc(64, ((size_t)sizes[k] / 64 + 1) * 64);
    take(blocks[k], (size_t)sizes[k], file);
  }
  uint64_t* words = calloc((size_t)head[3] + 1, sizeof *words);
  for (int64_t k = 0; k < head[3]; k++) {
    int64_t pair[2];
    take(pair, sizeof pair, file);
    words[k] = pair[0] < 0 ? (uint64_t)pair[1] : (uint64_t)(uintptr_t)(blocks[pair[0]] + pair[1]);
  }
  ENTRY(words, head[0], head[1]);
  rewind(file);
  fseek(file, sizeof head, SEEK_SET);
  for (int64_t k = 0; k < head[2]; k++) {
    fseek(file, sizeof sizes[k], SEEK_CUR);
    fwrite(blocks[k], 1, (size_t)sizes[k], file);
  }
  return fclose(file) == 0 ? 0 : 3;
}
