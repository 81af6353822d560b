/* tack/tack.h -- the C ABI of libtack: the stable boundary for hosts in any language.
 *
 * Ownership  Every function that answers a handle through its last parameter gives the caller one reference; give it back with the
 *            handle's *_release (null is allowed). A device keeps its runtime alive, an array its device: any order of releasing works.
 * Errors     Functions answer TACK_OK or what kind of failure it was; tack_last_error() then has the whole message. A failing function
 *            leaves its output parameters as they were. Nothing aborts the process and no exception leaves the library.
 * Threads    All functions may be called from any thread, also with one handle at a time from several; no two calls may be writing the
 *            same array's elements. Only releasing a handle that another thread is using is an error.
 * Blocking   Those that wait for the device say so.
 * Stability  Functions, enumerators and their meaning stay; new ones come behind the old. Compare tack_abi_version() with
 *            TACK_ABI_VERSION when the library is opened at run time.
 */
#ifndef TACK_TACK_H
#define TACK_TACK_H

#include <stddef.h>
#include <stdint.h>

#include "tack/export.hpp"

#define TACK_VERSION "0.1.0"
#define TACK_ABI_VERSION 2

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tack_runtime tack_runtime;
typedef struct tack_device tack_device;
typedef struct tack_array tack_array;

typedef enum tack_status {
  TACK_OK = 0,
  TACK_INVALID_ARGUMENT = 1, /* unknown device or option, launch limit, shapes, two devices, read-only */
  TACK_TYPE_MISMATCH = 2,    /* wrong argument kind, element type or count */
  TACK_OVERFLOW = 3,         /* an integer that does not fit its parameter */
  TACK_OUT_OF_MEMORY = 4,    /* with the sizes; the device stays usable */
  TACK_UNAVAILABLE = 5,      /* a device that cannot start */
  TACK_UNSUPPORTED = 6,      /* a capability that the backend lacks */
  TACK_COMPILE = 7,          /* the backend's compiler refused the source */
  TACK_CORRUPT = 8,          /* damaged data */
  TACK_IO = 9,               /* a file could not be read or written */
  TACK_DRIVER = 10,          /* a native call failed */
  TACK_INTERNAL = 11,        /* a defect in tack */
  TACK_INDEX = 12,           /* a kernel built with checks used an index outside of its array */
  TACK_ASSERTION = 13        /* an assert of a kernel built with checks failed */
} tack_status;

/* Element types: DLPack's type code in bits 8 to 15, bits in 0 to 7. */
typedef enum tack_dtype {
  TACK_I8 = 0x008,
  TACK_I16 = 0x010,
  TACK_I32 = 0x020,
  TACK_I64 = 0x040,
  TACK_U8 = 0x108,
  TACK_U16 = 0x110,
  TACK_U32 = 0x120,
  TACK_U64 = 0x140,
  TACK_F32 = 0x220,
  TACK_F64 = 0x240
} tack_dtype;

/* The version of the library that is loaded, as text and as the number of its ABI. */
TACK_API const char* tack_version(void);
TACK_API int tack_abi_version(void);
/* The message of this thread's last failing call, or "". Valid until the thread's next call. */
TACK_API const char* tack_last_error(void);

/* A runtime with its settings from the environment, and then `count` settings by name ("TACK_CACHE", "0"), which may be 0 with nulls. */
TACK_API tack_status tack_runtime_create(const char* const* names, const char* const* values, size_t count, tack_runtime** runtime);
TACK_API void tack_runtime_release(tack_runtime* runtime);
/* Waits for all devices. */
TACK_API tack_status tack_runtime_synchronize(tack_runtime* runtime);
/* How many devices of a type ("cpu", "cuda", ...) there are; 0 without a driver. */
TACK_API tack_status tack_runtime_device_count(tack_runtime* runtime, const char* type, int* count);

/* Covers [0, n) with calls of body(context, begin, end) on disjoint pieces of about `grain`, on up to `threads` threads, and returns when
 * all are done. `body` may be called from any thread and does not throw. */
typedef void (*tack_parallel_body)(void* context, int64_t begin, int64_t end);
typedef void (*tack_parallel_for)(void* user, int64_t n, int64_t grain, int threads, tack_parallel_body body, void* context);
/* Lets CPU kernels run on the host's own threads; null restores tack's pool. `user` must live until the runtime's end or the next call. */
TACK_API tack_status tack_runtime_set_parallel_for(tack_runtime* runtime, tack_parallel_for function, void* user);

/* level: 0 error, 1 warning, 2 info, 3 debug. Called from any thread, once for each message, which ends when the call does. */
typedef void (*tack_log_sink)(void* user, int level, const char* message);
/* Where messages go; null restores stderr. */
TACK_API tack_status tack_runtime_set_log_sink(tack_runtime* runtime, tack_log_sink sink, void* user);

/* A device: "cpu", "cuda", "cuda:1", ... num_threads: 0 for the default, else a CPU device of its own with so many threads. The first
 * call for a device starts it, which may take a second. */
TACK_API tack_status tack_device_get(tack_runtime* runtime, const char* spec, int num_threads, tack_device** device);
TACK_API void tack_device_release(tack_device* device);
/* "cpu", "cuda:1", "cpu(num_threads=2)"; valid as long as the handle. */
TACK_API const char* tack_device_name(const tack_device* device);
/* Whether arrays of this element type can be on the device: 1 or 0. */
TACK_API int tack_device_supports(const tack_device* device, tack_dtype dtype);
/* Waits for all work of the device and answers its first error. */
TACK_API tack_status tack_device_synchronize(tack_device* device);
/* Bytes of live arrays, and bytes that are kept for reuse. Either pointer may be null. */
TACK_API tack_status tack_device_memory(tack_device* device, uint64_t* in_use, uint64_t* cached);
/* Gives what is kept for reuse back to the system. */
TACK_API tack_status tack_device_trim(tack_device* device);

/* A new row-major array, its elements undefined. rank is at most 8; shape may be null for rank 0. */
TACK_API tack_status tack_array_create(tack_device* device, tack_dtype dtype, int rank, const int64_t* shape, tack_array** array);
/* Memory of the host's that the device can address, `bytes` long from `pointer` on, as a row-major array. release(user), which may be
 * null, is called from any thread when tack needs the memory no longer; not at all when this function fails. */
TACK_API tack_status tack_array_wrap(tack_device* device, void* pointer, size_t bytes, tack_dtype dtype, int rank, const int64_t* shape,
                                     void (*release)(void* user), void* user, tack_array** array);
TACK_API void tack_array_release(tack_array* array);
/* What it is. Strides are in bytes. Any pointer but `array` may be null; shape and strides take `rank` (at most 8) items. */
TACK_API tack_status tack_array_describe(const tack_array* array, tack_dtype* dtype, int* rank, int64_t* shape, int64_t* strides);
/* The address of element 0 on the device; the host may only use it where the device's memory is the host's. */
TACK_API void* tack_array_data(const tack_array* array);
/* Row-major elements from and to host memory, `bytes` of which must be exactly the array's. upload returns when the source has been
 * taken, download waits until all is there. */
TACK_API tack_status tack_array_upload(tack_array* array, const void* source, size_t bytes);
TACK_API tack_status tack_array_download(const tack_array* array, void* destination, size_t bytes);
/* Copies between arrays of one shape and element type, on any devices. */
TACK_API tack_status tack_array_copy(tack_array* destination, const tack_array* source);
/* Sets all elements to the one that `element` points at. */
TACK_API tack_status tack_array_fill(tack_array* array, const void* element);

#ifdef __cplusplus
}
#endif

#endif
