/* host.c -- the C ABI from C: a runtime, a device, arrays, and an error. */
#include <stdio.h>
#include <string.h>
#include <tack/tack.h>

static int failures = 0;

static void check(int condition, const char* what) {
  printf("%s  %s\n", condition ? "ok    " : "FAILED", what);
  if (!condition) ++failures;
}

int main(void) {
  const char* names[] = {"TACK_CACHE"};
  const char* values[] = {"0"};
  tack_runtime* runtime = NULL;
  tack_device* device = NULL;
  tack_array* a = NULL;
  tack_array* b = NULL;
  const int64_t shape[] = {2, 3};
  const float numbers[6] = {1, 2, 3, 4, 5, 6};
  float back[6] = {0};

  check(tack_abi_version() == TACK_ABI_VERSION && strcmp(tack_version(), TACK_VERSION) == 0, "the library is of the header's version");
  check(tack_runtime_create(names, values, 1, &runtime) == TACK_OK, "runtime");
  check(tack_device_get(runtime, "cpu", 0, &device) == TACK_OK && strcmp(tack_device_name(device), "cpu") == 0, "device");
  check(tack_device_get(runtime, "gpu", 0, &device) == TACK_INVALID_ARGUMENT && strstr(tack_last_error(), "gpu") != NULL, "error");
  check(tack_array_create(device, TACK_F32, 2, shape, &a) == TACK_OK && tack_array_create(device, TACK_F32, 2, shape, &b) == TACK_OK,
        "arrays");
  check(tack_array_upload(a, numbers, sizeof numbers) == TACK_OK, "upload");
  check(tack_array_copy(b, a) == TACK_OK, "copy");
  tack_device_release(device);
  tack_runtime_release(runtime);
  check(tack_array_download(b, back, sizeof back) == TACK_OK && memcmp(numbers, back, sizeof back) == 0,
        "download, after the others' release");
  tack_array_release(a);
  tack_array_release(b);
  return failures;
}
