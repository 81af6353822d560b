// Foundation.h -- declares what metal_api.mm uses of Apple's Foundation, in own words, so that it can be type-checked on systems without
// it. tests/unit/test_metal_api.py compares the declarations with metal-cpp's.
#pragma once

#include <objc/objc-stub.h>
#include <stdint.h>

typedef long NSInteger;
typedef unsigned long NSUInteger;

typedef struct {
  NSUInteger location;
  NSUInteger length;
} NSRange;
static inline NSRange NSMakeRange(NSUInteger location, NSUInteger length) { return NSRange{location, length}; }

@protocol NSObject
@end

__attribute__((objc_root_class))
@interface NSObject <NSObject>
+ (instancetype)alloc;
- (instancetype)init;
@end

typedef enum : NSUInteger { NSUTF8StringEncoding = 4 } NSStringEncoding;

@interface NSString : NSObject
+ (instancetype)stringWithCString:(const char*)text encoding:(NSStringEncoding)encoding;
@property(readonly) const char* UTF8String;
@end
@interface NSArray<Element> : NSObject
+ (instancetype)arrayWithObjects:(const id*)objects count:(NSUInteger)count;
@end

@interface NSURL : NSObject
+ (NSURL*)fileURLWithPath:(NSString*)path;
@end

@interface NSError : NSObject
@property(readonly) NSInteger code;
@property(readonly) NSString* domain;
@property(readonly) NSString* localizedDescription;
@end
