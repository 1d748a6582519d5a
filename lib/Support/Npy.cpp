//===- Npy.cpp - NumPy's array files ----------------------------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Support/Npy.h"
#include "lib/Support/Memory.h"
#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/ADT/StringSwitch.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"
#include <cstring>

using namespace llvm;

namespace attn {

static constexpr StringLiteral magic("\x93NUMPY");

/// No array of this project needs more; NumPy itself refuses headers above 10000 bytes.
static constexpr uint32_t maxHeaderBytes = 1 << 16;
static constexpr size_t maxRank = 32;

//===----------------------------------------------------------------------------------------===//
// The dictionary
//===----------------------------------------------------------------------------------------===//

namespace {
/// A parser for the part of Python's literals that NumPy writes.
class DictionaryParser {
public:
  explicit DictionaryParser(StringRef text) : rest(text) {}

  Expected<NpyHeader> parse() {
    if (!consume("{"))
      return unexpected("'{'");
    while (!consume("}"))
      if (Error error = parseEntry())
        return std::move(error);
    rest = rest.ltrim(" \t\r\n");
    if (!rest.empty())
      return unexpected("the end of the header");
    if (!hasDescr || !hasOrder || !hasShape)
      return createStringError("expected the keys 'descr', 'fortran_order' and 'shape' in the "
                               "header, got a header without '" +
                               Twine(!hasDescr   ? "descr"
                                     : !hasOrder ? "fortran_order"
                                                 : "shape") +
                               "'");
    return header;
  }

private:
  bool consume(StringRef token) {
    rest = rest.ltrim(" \t\r\n");
    return rest.consume_front(token);
  }

  Error unexpected(const Twine &wanted) {
    std::string got;
    raw_string_ostream stream(got);
    stream.write_escaped(rest.take_front(24));
    return createStringError("expected " + wanted + " in the header, got '" + got + "'");
  }

  Error parseString(StringRef &value) {
    StringRef quote = consume("'") ? "'" : consume("\"") ? "\"" : "";
    size_t end = quote.empty() ? StringRef::npos : rest.find(quote);
    if (end == StringRef::npos)
      return unexpected("a quoted string");
    value = rest.take_front(end);
    rest = rest.drop_front(end + 1);
    return Error::success();
  }

  Error parseShape() {
    if (!consume("("))
      return unexpected("'(' of a shape");
    while (!consume(")")) {
      rest = rest.ltrim(" \t\r\n");
      int64_t extent = 0;
      StringRef digits = rest.take_while(isDigit);
      if (digits.getAsInteger(10, extent)) // Also when there are none.
        return unexpected("an extent below 2^63");
      rest = rest.drop_front(digits.size());
      if (header.shape.size() == maxRank)
        return createStringError("expected a rank of at most " + Twine(maxRank) + ", got more");
      header.shape.push_back(extent);
      rest.consume_front("L"); // Python 2 marks its long integers.
      if (!consume(",") && !rest.starts_with(")"))
        return unexpected("',' or ')' in a shape");
    }
    return Error::success();
  }

  Error parseDescr() {
    if (consume("["))
      return createStringError("expected elements of one type, got a structured type");
    StringRef descr;
    if (Error error = parseString(descr))
      return error;
    if (descr.starts_with(">"))
      return createStringError("expected little-endian elements, got type '" + descr + "'");
    StringRef code = descr.ltrim("<|=");
    header.isUnsigned16 = code == "u2";
    header.isBytes = code == "u1" || code == "V1";
    if (header.isBytes) {
      header.kind = ElementKind::F8E4M3FN;
      return Error::success();
    }
    static constexpr std::pair<StringLiteral, ElementKind> kinds[] = {
        {"f2", ElementKind::F16}, {"f4", ElementKind::F32},  {"f8", ElementKind::F64},
        {"b1", ElementKind::I1},  {"i1", ElementKind::I8},   {"i4", ElementKind::I32},
        {"i8", ElementKind::I64}, {"V2", ElementKind::BF16}, {"u2", ElementKind::BF16}};
    const auto *found = find_if(kinds, [&](const auto &entry) { return entry.first == code; });
    if (found == std::end(kinds)) {
      std::string got;
      raw_string_ostream(got).write_escaped(descr.take_front(24));
      return createStringError("expected a type of f2, f4, f8, b1, i1, i4, i8, V2 (bf16) or V1 "
                               "(8 bits), got '" +
                               got + "'");
    }
    header.kind = found->second;
    return Error::success();
  }

  Error parseOrder() {
    if (consume("True"))
      header.isFortranOrder = true;
    else if (!consume("False"))
      return unexpected("True or False");
    return Error::success();
  }

  Error parseEntry() {
    StringRef key;
    if (Error error = parseString(key))
      return error;
    if (!consume(":"))
      return unexpected("':'");
    bool *seen = StringSwitch<bool *>(key)
                     .Case("descr", &hasDescr)
                     .Case("fortran_order", &hasOrder)
                     .Case("shape", &hasShape)
                     .Default(nullptr);
    if (!seen || *seen)
      return createStringError("expected 'descr', 'fortran_order' and 'shape' once each in the "
                               "header, got another key");
    *seen = true;
    if (Error error = seen == &hasDescr   ? parseDescr()
                      : seen == &hasOrder ? parseOrder()
                                          : parseShape())
      return error;
    if (!consume(",") && !rest.starts_with("}"))
      return unexpected("',' or '}'");
    return Error::success();
  }

  StringRef rest;
  NpyHeader header;
  bool hasDescr = false, hasOrder = false, hasShape = false;
};
} // namespace

Expected<NpyHeader> parseNpyDictionary(StringRef text) { return DictionaryParser(text).parse(); }

//===----------------------------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------------------------===//

namespace {
/// A file read front to back. Not mapped: a mapped file that shrinks kills the process.
class FileReader {
public:
  ~FileReader() {
    if (isOpen)
      sys::fs::closeFile(file);
  }

  Error open(StringRef path) {
    sys::fs::file_status status;
    if (std::error_code code = sys::fs::status(path, status))
      return createStringError(code, "expected a readable file, got: " + code.message());
    if (status.type() != sys::fs::file_type::regular_file)
      return createStringError("expected a regular file, got " +
                               Twine(status.type() == sys::fs::file_type::directory_file
                                         ? "a directory"
                                         : "something else"));
    left = status.getSize();
    Expected<sys::fs::file_t> opened = sys::fs::openNativeFileForRead(path);
    if (!opened)
      return createStringError("expected a readable file, got: " + toString(opened.takeError()));
    file = *opened;
    isOpen = true;
    return Error::success();
  }

  uint64_t bytesLeft() const { return left; }

  Error read(MutableArrayRef<char> to, StringRef what) {
    size_t done = 0;
    while (done < to.size()) {
      Expected<size_t> count = sys::fs::readNativeFile(
          file, to.slice(done, std::min<size_t>(to.size() - done, size_t(1) << 30)));
      if (!count)
        return createStringError("expected " + what + ", got: " + toString(count.takeError()));
      if (*count == 0)
        return createStringError("expected " + Twine(to.size()) + " bytes of " + what +
                                 ", got a file that ends after " + Twine(done) + " of them");
      done += *count;
    }
    left -= std::min<uint64_t>(left, done);
    return Error::success();
  }

private:
  sys::fs::file_t file = {};
  bool isOpen = false;
  uint64_t left = 0;
};
} // namespace

static bool isFloat8(std::optional<ElementKind> kind) {
  return kind == ElementKind::F8E4M3FN || kind == ElementKind::F8E5M2;
}

static Error checkExpectation(NpyHeader &header, const NpyExpectation &expected) {
  if (header.isBytes && !isFloat8(expected.kind))
    return createStringError("expected elements of " +
                             (expected.kind ? getName(*expected.kind) : "a supported type") +
                             ", got bytes (read only where floats of 8 bits are expected)");
  if (header.isBytes)
    header.kind = *expected.kind;
  if (header.isUnsigned16 && expected.kind != ElementKind::BF16)
    return createStringError("expected elements of " +
                             (expected.kind ? getName(*expected.kind) : "a supported type") +
                             ", got u2 (read only where bf16 is expected)");
  if (expected.kind && *expected.kind != header.kind)
    return createStringError("expected elements of " + getName(*expected.kind) + ", got " +
                             getName(header.kind));
  if (!expected.shape)
    return Error::success();
  bool matches = expected.shape->size() == header.shape.size() &&
                 all_of_zip(*expected.shape, header.shape,
                            [](int64_t want, int64_t got) { return want < 0 || want == got; });
  if (!matches)
    return createStringError("expected shape " + formatShape(*expected.shape) + ", got " +
                             formatShape(header.shape));
  return Error::success();
}

static Expected<NpyHeader> readHeader(FileReader &file, const NpyExpectation &expected) {
  char start[12] = {};
  if (Error error = file.read(MutableArrayRef(start, 8), "header"))
    return std::move(error);
  if (!StringRef(start, 8).starts_with(magic))
    return createStringError("expected a file that starts with \\x93NUMPY, got another format");
  unsigned version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3)
    return createStringError("expected format version 1, 2 or 3, got " + Twine(version));
  size_t lengthBytes = version == 1 ? 2 : 4;
  if (Error error = file.read(MutableArrayRef(start + 8, lengthBytes), "header"))
    return std::move(error);
  uint32_t length =
      version == 1 ? support::endian::read16le(start + 8) : support::endian::read32le(start + 8);
  if (length > maxHeaderBytes)
    return createStringError("expected a header of at most " + Twine(maxHeaderBytes) +
                             " bytes, got " + Twine(length));
  SmallVector<char, 256> text(length);
  if (Error error = file.read(text, "header"))
    return std::move(error);
  Expected<NpyHeader> header = parseNpyDictionary(StringRef(text.data(), text.size()));
  if (!header)
    return header;
  if (Error error = checkExpectation(*header, expected))
    return std::move(error);
  Expected<int64_t> bytes = countBytes(header->kind, header->shape);
  if (!bytes)
    return bytes.takeError();
  // Before any allocation: a few bytes of header can promise an exabyte.
  if (file.bytesLeft() < static_cast<uint64_t>(*bytes))
    return createStringError("expected " + Twine(*bytes) + " bytes of data for shape " +
                             formatShape(header->shape) + " of " + getName(header->kind) +
                             ", got " + Twine(file.bytesLeft()));
  return header;
}

static Error readData(FileReader &file, const NpyHeader &header, Array &array) {
  // A Fortran-order file is the row-major file of the array with its dimensions reversed.
  SmallVector<int64_t, 4> strides(array.getStrides()), extents(array.getShape());
  if (header.isFortranOrder) {
    std::reverse(strides.begin(), strides.end());
    std::reverse(extents.begin(), extents.end());
  }
  int64_t size = getByteSize(header.kind);
  bool isDirect = true;
  for (int64_t i = extents.size(), stride = 1; i-- > 0; stride *= extents[i])
    isDirect &= extents[i] == 1 || strides[i] == stride;
  char *data = array.dataAs<char>();
  if (isDirect) {
    if (Error error = file.read(MutableArrayRef(data, array.getByteCount()), "data"))
      return error;
  } else {
    SmallVector<char, 0> chunk(1 << 16);
    SmallVector<int64_t, 4> index(extents.size(), 0);
    int64_t offset = 0;
    for (int64_t done = 0, bytes = array.getByteCount(); done < bytes;) {
      size_t length = std::min<int64_t>(chunk.size(), bytes - done);
      if (Error error = file.read(MutableArrayRef(chunk.data(), length), "data"))
        return error;
      for (size_t at = 0; at < length; at += size) {
        std::memcpy(data + offset * size, chunk.data() + at, size);
        for (size_t dim = extents.size(); dim-- > 0;) {
          offset += strides[dim];
          if (++index[dim] < extents[dim])
            break;
          offset -= strides[dim] * extents[dim];
          index[dim] = 0;
        }
      }
      done += length;
    }
  }
  // Generated code loads an i1 and may assume that the other seven bits are zero.
  if (header.kind == ElementKind::I1)
    for (char &byte : MutableArrayRef(data, array.size()))
      byte = byte != 0;
  return Error::success();
}

static Error inFile(StringRef path, Error error) {
  return createStringError("'" + path + "': " + toString(std::move(error)));
}

Expected<NpyHeader> readNpyHeader(StringRef path, const NpyExpectation &expected) {
  FileReader file;
  if (Error error = file.open(path))
    return inFile(path, std::move(error));
  Expected<NpyHeader> header = readHeader(file, expected);
  if (!header)
    return inFile(path, header.takeError());
  return header;
}

Expected<Array> readNpy(StringRef path, const NpyExpectation &expected, ArrayRef<unsigned> order) {
  FileReader file;
  if (Error error = file.open(path))
    return inFile(path, std::move(error));
  Expected<NpyHeader> header = readHeader(file, expected);
  if (!header)
    return inFile(path, header.takeError());
  if (!order.empty() && order.size() != header->shape.size())
    return inFile(path, createStringError("expected rank " + Twine(order.size()) + ", got " +
                                          Twine(header->shape.size())));
  uint64_t bytes = cantFail(countBytes(header->kind, header->shape));
  if (Error error = checkAvailableMemory(bytes, "its elements"))
    return inFile(path, std::move(error));
  Expected<Array> array = Array::allocate(header->kind, header->shape, order);
  if (!array)
    return inFile(path, array.takeError());
  if (Error error = readData(file, *header, *array))
    return inFile(path, std::move(error));
  return array;
}

//===----------------------------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------------------------===//

static StringRef getDescr(ElementKind kind) {
  static constexpr StringLiteral codes[] = {"<f2", "<V2", "<f4", "<f8", "|V1",
                                            "|V1", "|b1", "|i1", "<i4", "<i8"};
  return codes[static_cast<unsigned>(kind)];
}

Error writeNpy(StringRef path, const Array &array) {
  std::error_code code;
  raw_fd_ostream stream(path, code);
  if (code)
    return createStringError(code,
                             "'" + path + "': expected a writable file, got: " + code.message());

  std::string text;
  raw_string_ostream header(text);
  header << "{'descr': '" << getDescr(array.getKind()) << "', 'fortran_order': False, 'shape': (";
  for (int64_t extent : array.getShape())
    header << extent << (array.getRank() == 1 ? "," : ", ");
  if (array.getRank() > 1)
    text.resize(text.size() - 2);
  text += "), }";
  // The data start at a multiple of 64, so that the file can be mapped.
  text.append(alignTo(10 + text.size() + 1, 64) - (10 + text.size() + 1), ' ');
  text += '\n';
  char length[2];
  support::endian::write16le(length, text.size());
  stream << magic << StringRef("\x01\x00", 2) << StringRef(length, 2) << text;

  int64_t size = getByteSize(array.getKind());
  array.forEachRun(0, array.size(), [&](char *data, int64_t stride, int64_t count, int64_t) {
    if (stride == 1) {
      stream.write(data, count * size);
      return;
    }
    for (int64_t i = 0; i < count; ++i)
      stream.write(data + i * stride * size, size);
  });
  stream.close();
  if (!stream.has_error())
    return Error::success();
  code = stream.error();
  stream.clear_error(); // An error left in a stream ends the process when the stream dies.
  return createStringError(
      code, "'" + path + "': expected to write the whole array, got: " + code.message());
}

} // namespace attn
