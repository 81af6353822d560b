// Metal.h -- declares what metal_api.mm uses of Apple's Metal, in own words, so that it can be type-checked on systems without it.
// tests/unit/test_metal_api.py compares selectors, types and values with metal-cpp's.
#pragma once

#import <Foundation/Foundation.h>

typedef enum : NSUInteger { MTLResourceStorageModeShared = 0 } MTLResourceOptions;
typedef enum : NSUInteger { MTLStorageModeShared = 0, MTLStorageModePrivate = 2 } MTLStorageMode;
typedef enum : NSUInteger { MTLTextureType3D = 7 } MTLTextureType;
typedef enum : NSUInteger { MTLTextureUsageShaderRead = 1 } MTLTextureUsage;
typedef enum : NSUInteger { MTLPixelFormatR32Float = 55 } MTLPixelFormat;
typedef enum : NSUInteger { MTLPipelineOptionNone = 0 } MTLPipelineOption;
typedef enum : NSUInteger { MTLLanguageVersion3_0 = 196608 } MTLLanguageVersion;
typedef enum : NSInteger { MTLMathModeSafe = 0, MTLMathModeFast = 2 } MTLMathMode;
typedef enum : NSInteger { MTLMathFloatingPointFunctionsFast = 0, MTLMathFloatingPointFunctionsPrecise = 1 } MTLMathFloatingPointFunctions;
typedef enum : NSUInteger { MTLCommandBufferStatusCompleted = 4, MTLCommandBufferStatusError = 5 } MTLCommandBufferStatus;
typedef enum : NSInteger { MTLGPUFamilyApple7 = 1007 } MTLGPUFamily;

typedef struct {
  NSUInteger width;
  NSUInteger height;
  NSUInteger depth;
} MTLSize;
static inline MTLSize MTLSizeMake(NSUInteger width, NSUInteger height, NSUInteger depth) { return MTLSize{width, height, depth}; }

typedef struct {
  NSUInteger x;
  NSUInteger y;
  NSUInteger z;
} MTLOrigin;
static inline MTLOrigin MTLOriginMake(NSUInteger x, NSUInteger y, NSUInteger z) { return MTLOrigin{x, y, z}; }

@protocol MTLFunction <NSObject>
@end

@protocol MTLLibrary <NSObject>
- (id<MTLFunction>)newFunctionWithName:(NSString*)name;
@end

@interface MTLCompileOptions : NSObject
@property MTLLanguageVersion languageVersion;
@property BOOL preserveInvariance;
@property BOOL fastMathEnabled __attribute__((availability(macos, introduced = 10.11, deprecated = 15.0)));
#if __MAC_OS_X_VERSION_MAX_ALLOWED >= 150000
@property MTLMathMode mathMode;
@property MTLMathFloatingPointFunctions mathFloatingPointFunctions;
#endif
@end

@interface MTLBinaryArchiveDescriptor : NSObject
@property NSURL* url;
@end

@interface MTLComputePipelineDescriptor : NSObject
@property NSString* label;
@property id<MTLFunction> computeFunction;
@property NSUInteger maxTotalThreadsPerThreadgroup;
@property NSArray* binaryArchives;
@end

@interface MTLComputePipelineReflection : NSObject
@end

@protocol MTLBinaryArchive <NSObject>
- (BOOL)addComputePipelineFunctionsWithDescriptor:(MTLComputePipelineDescriptor*)descriptor error:(NSError**)error;
- (BOOL)serializeToURL:(NSURL*)url error:(NSError**)error;
@end

@protocol MTLComputePipelineState <NSObject>
@property(readonly) NSUInteger maxTotalThreadsPerThreadgroup;
@end

@protocol MTLDevice;
@protocol MTLBuffer <NSObject>
@property(readonly) id<MTLDevice> device;
@property(readonly) MTLStorageMode storageMode;
@property(readonly) NSUInteger length;
- (void*)contents;
@end

@protocol MTLTexture <NSObject>
@end

@interface MTLTextureDescriptor : NSObject
@property MTLTextureType textureType;
@property MTLPixelFormat pixelFormat;
@property NSUInteger width;
@property NSUInteger height;
@property NSUInteger depth;
@property MTLStorageMode storageMode;
@property MTLTextureUsage usage;
@end

@protocol MTLComputeCommandEncoder <NSObject>
- (void)setComputePipelineState:(id<MTLComputePipelineState>)state;
- (void)setBuffer:(id<MTLBuffer>)buffer offset:(NSUInteger)offset atIndex:(NSUInteger)index;
- (void)setTexture:(id<MTLTexture>)texture atIndex:(NSUInteger)index;
- (void)setBytes:(const void*)bytes length:(NSUInteger)length atIndex:(NSUInteger)index;
- (void)dispatchThreadgroups:(MTLSize)threadgroups threadsPerThreadgroup:(MTLSize)threads;
- (void)endEncoding;
@end

@protocol MTLBlitCommandEncoder <NSObject>
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)source_offset
              toBuffer:(id<MTLBuffer>)destination
     destinationOffset:(NSUInteger)destination_offset
                  size:(NSUInteger)size;
- (void)copyFromBuffer:(id<MTLBuffer>)source
          sourceOffset:(NSUInteger)source_offset
     sourceBytesPerRow:(NSUInteger)row
   sourceBytesPerImage:(NSUInteger)image
            sourceSize:(MTLSize)size
             toTexture:(id<MTLTexture>)texture
      destinationSlice:(NSUInteger)slice
      destinationLevel:(NSUInteger)level
     destinationOrigin:(MTLOrigin)origin;
- (void)fillBuffer:(id<MTLBuffer>)buffer range:(NSRange)range value:(unsigned char)value;
- (void)endEncoding;
@end

@protocol MTLCommandBuffer <NSObject>
@property NSString* label;
@property(readonly) MTLCommandBufferStatus status;
@property(readonly) NSError* error;
- (id<MTLComputeCommandEncoder>)computeCommandEncoder;
- (id<MTLBlitCommandEncoder>)blitCommandEncoder;
- (void)commit;
- (void)waitUntilCompleted;
@end

@protocol MTLCommandQueue <NSObject>
- (id<MTLCommandBuffer>)commandBuffer;
@end

@protocol MTLDevice <NSObject>
@property(readonly) NSString* name;
@property(readonly) uint64_t registryID;
@property(readonly) MTLSize maxThreadsPerThreadgroup;
@property(readonly) NSUInteger maxThreadgroupMemoryLength;
@property(readonly) BOOL supports32BitFloatFiltering;
- (id<MTLTexture>)newTextureWithDescriptor:(MTLTextureDescriptor*)descriptor;
- (BOOL)supportsFamily:(MTLGPUFamily)family;
- (id<MTLCommandQueue>)newCommandQueue;
- (id<MTLBuffer>)newBufferWithLength:(NSUInteger)length options:(MTLResourceOptions)options;
- (id<MTLLibrary>)newLibraryWithSource:(NSString*)source options:(MTLCompileOptions*)options error:(NSError**)error;
- (id<MTLLibrary>)newLibraryWithURL:(NSURL*)url error:(NSError**)error;
- (id<MTLComputePipelineState>)newComputePipelineStateWithDescriptor:(MTLComputePipelineDescriptor*)descriptor
                                                             options:(MTLPipelineOption)options
                                                          reflection:(MTLComputePipelineReflection**)reflection
                                                               error:(NSError**)error;
- (id<MTLBinaryArchive>)newBinaryArchiveWithDescriptor:(MTLBinaryArchiveDescriptor*)descriptor error:(NSError**)error;
@end

extern "C" id<MTLDevice> MTLCreateSystemDefaultDevice(void);
