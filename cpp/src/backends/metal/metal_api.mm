// backends/metal/metal_api.mm -- the functions of metal.def over Apple's Metal. Nothing is decided here: what can be tested without a Mac
// lies in the files beside.
#import <Foundation/Foundation.h>
#import <Metal/Metal.h>

#include <cstdio>

#include "backends/metal/metal_api.h"

// What came with macOS 15. An older SDK does not know it; an older system does not have it.
#if defined(__MAC_OS_X_VERSION_MAX_ALLOWED) && __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000
#  define TACK_HAS_MATH_MODE 1
#else
#  define TACK_HAS_MATH_MODE 0
#endif

namespace tack::metal::abi {

namespace {

// Objects cross as pointers that hold one reference; ARC does all other counting.
Object hold(id object) { return (__bridge_retained void*)object; }
template <class Pointer>
Pointer object_of(Object object) {
  return (__bridge Pointer)object;
}

const char* text_of(NSString* text) {
  const char* const bytes = text == nil ? nullptr : [text UTF8String];
  return bytes == nullptr ? "" : bytes;
}

Status fail(NSError* error, Problem* problem) {
  problem->code = error == nil ? 0 : static_cast<std::int64_t>([error code]);
  std::snprintf(problem->domain, sizeof problem->domain, "%s", error == nil ? "" : text_of([error domain]));
  std::snprintf(problem->text, sizeof problem->text, "%s", error == nil ? "" : text_of([error localizedDescription]));
  return Status::failed;
}

/// Fails for a reason that is not Metal's.
Status refuse(const char* reason, Problem* problem) {
  fail(nil, problem);
  std::snprintf(problem->text, sizeof problem->text, "%s", reason);
  return Status::failed;
}

/// A new object, or why there is none.
Status give(id object, NSError* error, Object* out, Problem* problem) {
  if (object == nil) return fail(error, problem);
  *out = hold(object);
  return Status::done;
}

NSString* string_of(const char* text) { return [NSString stringWithCString:text encoding:NSUTF8StringEncoding]; }

/// What a pipeline is made of, the same for archives and for launches: only then is the code of one found in the other.
MTLComputePipelineDescriptor* descriptor_of(id<MTLLibrary> library, const char* function, std::uint32_t threads) {
  id<MTLFunction> code = [library newFunctionWithName:string_of(function)];
  if (code == nil) return nil;
  MTLComputePipelineDescriptor* descriptor = [[MTLComputePipelineDescriptor alloc] init];
  descriptor.label = string_of(function);
  descriptor.computeFunction = code;
  descriptor.maxTotalThreadsPerThreadgroup = threads;
  return descriptor;
}

Status no_function(const char* function, Problem* problem) {
  problem->code = static_cast<std::int64_t>(LibraryError::function_not_found);
  std::snprintf(problem->domain, sizeof problem->domain, "%s", library_domain);
  std::snprintf(problem->text, sizeof problem->text, "the library has no function '%s'", function);
  return Status::failed;
}

void set_math(MTLCompileOptions* options, bool fast) {
#if TACK_HAS_MATH_MODE
  if (@available(macOS 15.0, *)) {
    options.mathMode = fast ? MTLMathModeFast : MTLMathModeSafe;
    options.mathFloatingPointFunctions = fast ? MTLMathFloatingPointFunctionsFast : MTLMathFloatingPointFunctionsPrecise;
    return;
  }
#endif
#pragma clang diagnostic push
#pragma clang diagnostic ignored "-Wdeprecated-declarations"  // since macOS 15, where it is not reached
  options.fastMathEnabled = fast ? YES : NO;
#pragma clang diagnostic pop
}

Progress progress_of(id<MTLCommandBuffer> commands, Problem* problem) {
  switch ([commands status]) {
    case MTLCommandBufferStatusCompleted:
      return Progress::done;
    case MTLCommandBufferStatusError:
      fail([commands error], problem);
      return Progress::failed;
    default:
      return Progress::pending;
  }
}

std::uint32_t family_of(id<MTLDevice> device) {
  constexpr std::uint32_t first = 7, last = 10, offset = 1000;  // MTLGPUFamilyApple7 is 1007
  std::uint32_t family = 0;
  for (std::uint32_t candidate = first; candidate <= last; ++candidate)
    if ([device supportsFamily:static_cast<MTLGPUFamily>(offset + candidate)]) family = candidate;
  return family;
}

}  // namespace

extern "C" {

Status tack_metal_device(Object* out, DeviceFacts* facts, Problem* problem) {
  @autoreleasepool {
    id<MTLDevice> device = MTLCreateSystemDefaultDevice();
    if (device == nil) return fail(nil, problem);
    std::snprintf(facts->name, sizeof facts->name, "%s", text_of([device name]));
    facts->family = family_of(device);
    facts->max_threads = static_cast<std::uint32_t>([device maxThreadsPerThreadgroup].width);
    facts->group_bytes = [device maxThreadgroupMemoryLength];
    facts->filters = [device supports32BitFloatFiltering] ? 1 : 0;
    return give(device, nil, out, problem);
  }
}

void tack_metal_release(Object object) {
  @autoreleasepool {
    [[maybe_unused]] const id owned = (__bridge_transfer id)object;
  }
}

Status tack_metal_queue(Object device, Object* out, Problem* problem) {
  @autoreleasepool {
    return give([object_of<id<MTLDevice>>(device) newCommandQueue], nil, out, problem);
  }
}

Status tack_metal_buffer(Object device, std::size_t bytes, Object* out, void** contents, Problem* problem) {
  @autoreleasepool {
    id<MTLBuffer> buffer = [object_of<id<MTLDevice>>(device) newBufferWithLength:bytes options:MTLResourceStorageModeShared];
    if (buffer != nil) *contents = [buffer contents];
    return give(buffer, nil, out, problem);
  }
}

Status tack_metal_adopt(Object device, Object given, Object* out, void** contents, std::size_t* bytes, Problem* problem) {
  @autoreleasepool {
    id<MTLBuffer> buffer = object_of<id<MTLBuffer>>(given);
    if ([[buffer device] registryID] != [object_of<id<MTLDevice>>(device) registryID]) return refuse("it is another GPU's", problem);
    if ([buffer storageMode] != MTLStorageModeShared) return refuse("its storage is not shared with the host", problem);
    *contents = [buffer contents];
    *bytes = [buffer length];
    return give(buffer, nil, out, problem);
  }
}

Status tack_metal_texture(Object device, std::size_t width, std::size_t height, std::size_t depth, Object* out, Problem* problem) {
  @autoreleasepool {
    MTLTextureDescriptor* descriptor = [[MTLTextureDescriptor alloc] init];
    descriptor.textureType = MTLTextureType3D;
    descriptor.pixelFormat = MTLPixelFormatR32Float;
    descriptor.width = width;
    descriptor.height = height;
    descriptor.depth = depth;
    descriptor.storageMode = MTLStorageModePrivate;
    descriptor.usage = MTLTextureUsageShaderRead;
    return give([object_of<id<MTLDevice>>(device) newTextureWithDescriptor:descriptor], nil, out, problem);
  }
}

Status tack_metal_compile(Object device, const char* text, int fast_math, Object* out, Problem* problem) {
  @autoreleasepool {
    MTLCompileOptions* options = [[MTLCompileOptions alloc] init];
    options.languageVersion = MTLLanguageVersion3_0;
    options.preserveInvariance = YES;
    set_math(options, fast_math != 0);
    NSError* error = nil;
    id<MTLLibrary> library = [object_of<id<MTLDevice>>(device) newLibraryWithSource:string_of(text) options:options error:&error];
    return give(library, error, out, problem);
  }
}

Status tack_metal_pipeline(Object device, Object library, const char* function, Object archive, std::uint32_t threads, Object* out,
                           PipelineFacts* facts, Problem* problem) {
  @autoreleasepool {
    MTLComputePipelineDescriptor* descriptor = descriptor_of(object_of<id<MTLLibrary>>(library), function, threads);
    if (descriptor == nil) return no_function(function, problem);
    if (archive != nullptr) descriptor.binaryArchives = @[ object_of<id<MTLBinaryArchive>>(archive) ];
    NSError* error = nil;
    id<MTLComputePipelineState> pipeline = [object_of<id<MTLDevice>>(device) newComputePipelineStateWithDescriptor:descriptor
                                                                                                           options:MTLPipelineOptionNone
                                                                                                        reflection:nil
                                                                                                             error:&error];
    if (pipeline != nil) facts->max_threads = static_cast<std::uint32_t>([pipeline maxTotalThreadsPerThreadgroup]);
    return give(pipeline, error, out, problem);
  }
}

Status tack_metal_archive(Object device, const char* path, Object* out, Problem* problem) {
  @autoreleasepool {
    MTLBinaryArchiveDescriptor* descriptor = [[MTLBinaryArchiveDescriptor alloc] init];
    if (path != nullptr) descriptor.url = [NSURL fileURLWithPath:string_of(path)];
    NSError* error = nil;
    id<MTLBinaryArchive> archive = [object_of<id<MTLDevice>>(device) newBinaryArchiveWithDescriptor:descriptor error:&error];
    return give(archive, error, out, problem);
  }
}

Status tack_metal_archive_add(Object archive, Object library, const char* function, std::uint32_t threads, Problem* problem) {
  @autoreleasepool {
    MTLComputePipelineDescriptor* descriptor = descriptor_of(object_of<id<MTLLibrary>>(library), function, threads);
    if (descriptor == nil) return no_function(function, problem);
    NSError* error = nil;
    const BOOL added = [object_of<id<MTLBinaryArchive>>(archive) addComputePipelineFunctionsWithDescriptor:descriptor error:&error];
    return added ? Status::done : fail(error, problem);
  }
}

Status tack_metal_archive_save(Object archive, const char* path, Problem* problem) {
  @autoreleasepool {
    NSError* error = nil;
    const BOOL saved = [object_of<id<MTLBinaryArchive>>(archive) serializeToURL:[NSURL fileURLWithPath:string_of(path)] error:&error];
    return saved ? Status::done : fail(error, problem);
  }
}

Status tack_metal_functions(Object device, const char* path, Object* out, Problem* problem) {
  @autoreleasepool {
    NSError* error = nil;
    id<MTLLibrary> library = [object_of<id<MTLDevice>>(device) newLibraryWithURL:[NSURL fileURLWithPath:string_of(path)] error:&error];
    return give(library, error, out, problem);
  }
}

Status tack_metal_commands(Object queue, const char* label, Object* out, Problem* problem) {
  @autoreleasepool {
    id<MTLCommandBuffer> commands = [object_of<id<MTLCommandQueue>>(queue) commandBuffer];
    if (commands != nil) commands.label = string_of(label);
    return give(commands, nil, out, problem);
  }
}

Status tack_metal_dispatch(Object commands, const Dispatch* dispatch, Problem* problem) {
  @autoreleasepool {
    id<MTLComputeCommandEncoder> encoder = [object_of<id<MTLCommandBuffer>>(commands) computeCommandEncoder];
    if (encoder == nil) return fail(nil, problem);
    [encoder setComputePipelineState:object_of<id<MTLComputePipelineState>>(dispatch->pipeline)];
    for (std::size_t i = 0; i < dispatch->count; ++i)
      [encoder setBuffer:object_of<id<MTLBuffer>>(dispatch->buffers[i].buffer) offset:dispatch->buffers[i].offset atIndex:i];
    for (std::size_t i = 0; i < dispatch->texture_count; ++i)
      [encoder setTexture:object_of<id<MTLTexture>>(dispatch->textures[i]) atIndex:i];
    if (dispatch->constant_bytes != 0) [encoder setBytes:dispatch->constants length:dispatch->constant_bytes atIndex:dispatch->count];
    [encoder dispatchThreadgroups:MTLSizeMake(dispatch->groups, 1, 1) threadsPerThreadgroup:MTLSizeMake(dispatch->threads, 1, 1)];
    [encoder endEncoding];
    return Status::done;
  }
}

Status tack_metal_copy(Object commands, const Binding* from, const Binding* to, std::size_t bytes, Problem* problem) {
  @autoreleasepool {
    id<MTLBlitCommandEncoder> encoder = [object_of<id<MTLCommandBuffer>>(commands) blitCommandEncoder];
    if (encoder == nil) return fail(nil, problem);
    [encoder copyFromBuffer:object_of<id<MTLBuffer>>(from->buffer)
               sourceOffset:from->offset
                   toBuffer:object_of<id<MTLBuffer>>(to->buffer)
          destinationOffset:to->offset
                       size:bytes];
    [encoder endEncoding];
    return Status::done;
  }
}

Status tack_metal_fill(Object commands, const Binding* to, std::size_t bytes, std::uint8_t value, Problem* problem) {
  @autoreleasepool {
    id<MTLBlitCommandEncoder> encoder = [object_of<id<MTLCommandBuffer>>(commands) blitCommandEncoder];
    if (encoder == nil) return fail(nil, problem);
    [encoder fillBuffer:object_of<id<MTLBuffer>>(to->buffer) range:NSMakeRange(to->offset, bytes) value:value];
    [encoder endEncoding];
    return Status::done;
  }
}

Status tack_metal_texels(Object commands, const Binding* from, Object texture, std::size_t width, std::size_t height, std::size_t depth,
                         Problem* problem) {
  @autoreleasepool {
    id<MTLBlitCommandEncoder> encoder = [object_of<id<MTLCommandBuffer>>(commands) blitCommandEncoder];
    if (encoder == nil) return fail(nil, problem);
    [encoder copyFromBuffer:object_of<id<MTLBuffer>>(from->buffer)
               sourceOffset:from->offset
          sourceBytesPerRow:width * sizeof(float)
        sourceBytesPerImage:width * height * sizeof(float)
                 sourceSize:MTLSizeMake(width, height, depth)
                  toTexture:object_of<id<MTLTexture>>(texture)
           destinationSlice:0
           destinationLevel:0
          destinationOrigin:MTLOriginMake(0, 0, 0)];
    [encoder endEncoding];
    return Status::done;
  }
}

void tack_metal_commit(Object commands) {
  @autoreleasepool {
    [object_of<id<MTLCommandBuffer>>(commands) commit];
  }
}

Progress tack_metal_progress(Object commands, Problem* problem) {
  @autoreleasepool {
    return progress_of(object_of<id<MTLCommandBuffer>>(commands), problem);
  }
}

Progress tack_metal_wait(Object commands, Problem* problem) {
  @autoreleasepool {
    [object_of<id<MTLCommandBuffer>>(commands) waitUntilCompleted];
    return progress_of(object_of<id<MTLCommandBuffer>>(commands), problem);
  }
}

}  // extern "C"

}  // namespace tack::metal::abi
