//===- NpyTest.cpp - NumPy's array files ------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Npy.h"
#include "lib/Support/Random.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"
#include <random>
#include <vector>

using namespace attn;
using llvm::StringRef;
using Shape = llvm::SmallVector<int64_t, 4>;

namespace {
class NpyTest : public testing::Test {
protected:
  void SetUp() override {
    ASSERT_FALSE(llvm::sys::fs::createTemporaryFile("attn-npy", "npy", path));
  }
  void TearDown() override { llvm::sys::fs::remove(path); }

  void writeBytes(StringRef bytes) {
    std::error_code code;
    llvm::raw_fd_ostream(path, code) << bytes;
    ASSERT_FALSE(code);
  }

  std::string readBytes() {
    auto buffer = llvm::MemoryBuffer::getFile(path);
    return buffer ? (*buffer)->getBuffer().str() : "";
  }

  static std::string makeFile(StringRef dictionary, StringRef data, char version = 1) {
    std::string bytes("\x93NUMPY", 6);
    bytes += version;
    bytes += '\0';
    for (unsigned i = 0; i < (version == 1 ? 2u : 4u); ++i)
      bytes += static_cast<char>(dictionary.size() >> (8 * i));
    return bytes + dictionary.str() + data.str();
  }

  std::string getError(StringRef bytes, const NpyExpectation &expected = {}) {
    writeBytes(bytes);
    llvm::Expected<Array> array = readNpy(path, expected);
    if (array)
      return "";
    std::string message = llvm::toString(array.takeError());
    EXPECT_EQ(message.find("'" + std::string(path) + "': expected "), 0u) << message;
    return message.substr(path.size() + 4);
  }

  llvm::SmallString<64> path;
};
} // namespace

TEST_F(NpyTest, RoundTrip) {
  for (ElementKind kind : {ElementKind::F16, ElementKind::BF16, ElementKind::F32, ElementKind::F64,
                           ElementKind::F8E4M3FN, ElementKind::F8E5M2, ElementKind::I1,
                           ElementKind::I8, ElementKind::I32, ElementKind::I64}) {
    for (const Shape &shape : {Shape{2, 3, 4, 5}, Shape{7}, Shape{}, Shape{3, 0, 2, 1}}) {
      for (bool isSwapped : {false, true}) {
        llvm::SmallVector<unsigned> order;
        if (isSwapped && shape.size() == 4)
          order = {0, 2, 1, 3};
        Array written = llvm::cantFail(Array::allocate(kind, shape, order));
        fillNormal(written, 5);
        ASSERT_FALSE(bool(writeNpy(path, written)));
        EXPECT_EQ(readBytes().size() % 64, size_t(written.getByteCount()) % 64);
        llvm::Expected<Array> read = readNpy(path, {kind, shape}, order);
        ASSERT_TRUE(bool(read)) << llvm::toString(read.takeError());
        for (int64_t i = 0; i < written.size(); ++i)
          EXPECT_EQ(read->get(i), written.get(i));
      }
    }
  }
}

TEST_F(NpyTest, FortranOrder) {
  // [[0, 1, 2], [3, 4, 5]], column by column.
  for (char version : {1, 2, 3}) {
    writeBytes(makeFile("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3), }\n",
                        StringRef("\0\3\1\4\2\5", 6), version));
    for (const std::vector<unsigned> &order : {std::vector<unsigned>{0, 1}, {1, 0}}) {
      Array array = llvm::cantFail(readNpy(path, {}, order));
      for (int64_t i = 0; i < 6; ++i)
        EXPECT_EQ(array.get(i), i);
    }
  }
}

TEST_F(NpyTest, Spellings) {
  for (StringRef text : {"{'descr':'<f4','fortran_order':False,'shape':(2,)}",
                         "{\"shape\": (2L,), 'fortran_order': False, 'descr': \"<f4\", }   \n",
                         "{'descr': '=f4', 'fortran_order': False, 'shape': (2), }"}) {
    llvm::Expected<NpyHeader> header = parseNpyDictionary(text);
    ASSERT_TRUE(bool(header)) << llvm::toString(header.takeError());
    EXPECT_EQ(header->kind, ElementKind::F32);
    EXPECT_EQ(header->shape, (Shape{2}));
  }
}

TEST_F(NpyTest, BFloat) {
  StringRef one("\x80\x3f", 2);
  for (StringRef descr : {"|V2", "<V2", "<u2"}) {
    writeBytes(
        makeFile(("{'descr': '" + descr + "', 'fortran_order': False, 'shape': ()}").str(), one));
    Array array = llvm::cantFail(readNpy(path, {ElementKind::BF16, std::nullopt}));
    EXPECT_EQ(array.get(0), 1);
  }
  EXPECT_EQ(getError(makeFile("{'descr': '<u2', 'fortran_order': False, 'shape': ()}", one)),
            "expected elements of a supported type, got u2 (read only where bf16 is expected)");
}

TEST_F(NpyTest, FloatsOf8Bits) {
  StringRef byte("\x3c", 1);
  for (StringRef descr : {"|V1", "<V1", "|u1"}) {
    std::string file =
        makeFile(("{'descr': '" + descr + "', 'fortran_order': False, 'shape': ()}").str(), byte);
    writeBytes(file);
    Array e4m3 = llvm::cantFail(readNpy(path, {ElementKind::F8E4M3FN, std::nullopt}));
    EXPECT_EQ(e4m3.get(0), 1.5);
    Array e5m2 = llvm::cantFail(readNpy(path, {ElementKind::F8E5M2, std::nullopt}));
    EXPECT_EQ(e5m2.get(0), 1);
    EXPECT_EQ(getError(file), "expected elements of a supported type, got bytes (read only where "
                              "floats of 8 bits are expected)");
    EXPECT_EQ(getError(file, {ElementKind::I8, std::nullopt}),
              "expected elements of i8, got bytes (read only where floats of 8 bits are expected)");
  }
}

TEST_F(NpyTest, BooleansAreZeroOrOne) {
  writeBytes(makeFile("{'descr': '|b1', 'fortran_order': False, 'shape': (3,)}",
                      StringRef("\0\2\xff", 3)));
  Array array = llvm::cantFail(readNpy(path));
  EXPECT_EQ(array.get(0), 0);
  EXPECT_EQ(array.get(1), 1);
  EXPECT_EQ(array.get(2), 1);
}

TEST_F(NpyTest, ReportsErrors) {
  StringRef good = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
  std::string data(24, '\0');
  EXPECT_EQ(getError(""), "expected 8 bytes of header, got a file that ends after 0 of them");
  EXPECT_EQ(getError("PK\x03\x04 not an npy file"),
            "expected a file that starts with \\x93NUMPY, got another format");
  EXPECT_EQ(getError(makeFile(good, data, 4)), "expected format version 1, 2 or 3, got 4");
  EXPECT_EQ(getError(makeFile(good, data).substr(0, 30)),
            "expected 59 bytes of header, got a file that ends after 20 of them");
  EXPECT_EQ(getError(makeFile(good, StringRef(data).drop_back())),
            "expected 24 bytes of data for shape 2x3 of f32, got 23");
  EXPECT_EQ(getError(makeFile(good, data), {ElementKind::F16, std::nullopt}),
            "expected elements of f16, got f32");
  EXPECT_EQ(getError(makeFile(good, data), {ElementKind::F32, Shape{-1, 4}}),
            "expected shape ?x4, got 2x3");
  EXPECT_EQ(getError(makeFile("{'descr': '>f4', 'fortran_order': False, 'shape': ()}", data)),
            "expected little-endian elements, got type '>f4'");
  EXPECT_EQ(getError(makeFile("{'descr': '<c8', 'fortran_order': False, 'shape': ()}", data)),
            "expected a type of f2, f4, f8, b1, i1, i4, i8, V2 (bf16) or V1 (8 bits), got '<c8'");
  EXPECT_EQ(
      getError(makeFile("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': ()}", data)),
      "expected elements of one type, got a structured type");
  EXPECT_EQ(getError(makeFile("{'descr': '<f4', 'fortran_order': False, 'shape': "
                              "(9223372036854775807, 9)}",
                              data)),
            "expected a number of elements below 2^63, got shape 9223372036854775807x9");
  EXPECT_EQ(getError(makeFile("{'descr': '<f4', 'fortran_order': False, 'shape': "
                              "(9223372036854775808,)}",
                              data)),
            "expected an extent below 2^63 in the header, got '9223372036854775808,)}'");
  EXPECT_EQ(getError(makeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}", data)),
            "expected an extent below 2^63 in the header, got '-1,)}'");
  EXPECT_EQ(getError(makeFile("{'descr': '<f4', 'fortran_order': False}", data)),
            "expected the keys 'descr', 'fortran_order' and 'shape' in the header, got a header "
            "without 'shape'");
  EXPECT_EQ(getError(makeFile("{'descr': '<f4', 'fortran_order': False, 'shape': (1,), ", data)),
            "expected a quoted string in the header, got ''");
  EXPECT_EQ(getError(makeFile("{'descr': '<f4', 'fortran_order': 1, 'shape': (1,)}", data)),
            "expected True or False in the header, got '1, 'shape': (1,)}'");
}

TEST_F(NpyTest, FilesThatAreNone) {
  auto getMessage = [](StringRef file) {
    llvm::Expected<Array> array = readNpy(file);
    return array ? "" : llvm::toString(array.takeError());
  };
  EXPECT_EQ(getMessage("/no/such/file.npy"),
            "'/no/such/file.npy': expected a readable file, got: No such file or directory");
  EXPECT_EQ(getMessage("/"), "'/': expected a regular file, got a directory");
  EXPECT_EQ(getMessage("/dev/zero"), "'/dev/zero': expected a regular file, got something else");
  Array array = llvm::cantFail(Array::allocate(ElementKind::F32, {1000}));
  EXPECT_EQ(llvm::toString(writeNpy("/no/such/file.npy", array)),
            "'/no/such/file.npy': expected a writable file, got: No such file or directory");
  EXPECT_EQ(llvm::toString(writeNpy("/dev/full", array)),
            "'/dev/full': expected to write the whole array, got: No space left on device");
}

TEST_F(NpyTest, DamagedFilesAreErrorsOrArrays) {
  // Whatever the bytes, reading ends; with a sanitizer, this also says that it stays in bounds.
  Array array = llvm::cantFail(Array::allocate(ElementKind::F32, {2, 3, 4}));
  fillNormal(array, 1);
  ASSERT_FALSE(bool(writeNpy(path, array)));
  std::string good = readBytes();
  std::mt19937 random(1);
  static constexpr char interesting[] = "0123456789(){}',:<>|fVuiLTrue-\xff\x7f\x80";
  int numRead = 0;
  for (int round = 0; round < 3000; ++round) {
    std::string bytes = good;
    for (unsigned edit = random() % 4 + 1; edit-- > 0;) {
      size_t at = random() % std::min<size_t>(bytes.size(), 90);
      switch (random() % 4) {
      case 0:
        bytes[at] = static_cast<char>(random());
        break;
      case 1:
        bytes[at] = interesting[random() % sizeof(interesting)];
        break;
      case 2:
        bytes.erase(at, random() % 8);
        break;
      default:
        bytes.insert(at, 1 + random() % 20, interesting[random() % sizeof(interesting)]);
        break;
      }
    }
    if (random() % 4 == 0)
      bytes.resize(random() % (bytes.size() + 1));
    writeBytes(bytes);
    if (llvm::Expected<Array> read = readNpy(path))
      ++numRead;
    else
      llvm::consumeError(read.takeError());
  }
  EXPECT_GT(numRead, 0);
}
