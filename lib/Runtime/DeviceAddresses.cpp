//===- DeviceAddresses.cpp - an address space of a GPU -------------------------------------===//
//
// Part of the attn project, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------------------------===//

#include "lib/Runtime/AddressSpace.h"
#include "lib/Runtime/Device.h"

namespace attn {

namespace {
class DeviceAddresses final : public AddressSpace {
public:
  DeviceAddresses(DeviceContext context, size_t pieceBytes)
      : context(std::move(context)), pieceBytes(pieceBytes) {}

  ~DeviceAddresses() override {
    ContextScope scope(getDriver(), context.get());
    if (base && scope.getCode() == cuda::Success)
      (void)getDriver().MemAddressFree(base, bytes);
  }

  size_t getPieceBytes() const override { return pieceBytes; }
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  char *getBase() const override { return reinterpret_cast<char *>(base); }

  Status reserve(size_t wanted) override {
    Status status = run("reserve " + std::to_string(wanted) + " bytes of addresses",
                        [&] { return getDriver().MemAddressReserve(&base, wanted, 0, 0, 0); });
    bytes = wanted;
    return status;
  }

  Result<Piece> make() override {
    Piece piece = 0;
    Status status = run("allocate " + std::to_string(pieceBytes) + " bytes of device memory", [&] {
      cuda::AllocationProperties properties = getProperties(context.getInfo().ordinal);
      return getDriver().MemCreate(&piece, pieceBytes, &properties, 0);
    });
    if (!status.ok())
      return status;
    return piece;
  }

  Status destroy(Piece piece) override {
    return run("give memory back", [&] { return getDriver().MemRelease(piece); });
  }

  Status map(size_t offset, std::span<const Piece> pieces) override {
    return run("map memory", [&] {
      size_t count = 0;
      cuda::Code code = cuda::Success;
      for (; count < pieces.size() && code == cuda::Success; ++count)
        code =
            getDriver().MemMap(base + offset + count * pieceBytes, pieceBytes, 0, pieces[count], 0);
      cuda::AccessDescription access = {getLocation(context.getInfo().ordinal),
                                        cuda::AccessReadWrite};
      if (code == cuda::Success && count)
        code = getDriver().MemSetAccess(base + offset, count * pieceBytes, &access, 1);
      else if (count)
        --count;
      if (code != cuda::Success)
        (void)unmapPieces(offset, count);
      return code;
    });
  }

  Status unmap(size_t offset, size_t count) override {
    return run("unmap memory", [&] { return unmapPieces(offset, count); });
  }

  Result<Mark> mark(void *stream) override {
    cuda::Event event = nullptr;
    Status status = run("mark a stream", [&] {
      cuda::CaptureStatus capture = cuda::CaptureNone;
      auto *at = static_cast<cuda::Stream>(stream);
      cuda::Code code = getDriver().StreamIsCapturing(at, &capture);
      if (code == cuda::Success && capture != cuda::CaptureNone)
        code = cuda::CaptureUnsupported;
      if (code == cuda::Success)
        code = getDriver().EventCreate(&event, cuda::eventWithoutTiming);
      if (code == cuda::Success)
        code = getDriver().EventRecord(event, at);
      return code;
    });
    if (status.ok())
      return reinterpret_cast<Mark>(event);
    if (event)
      (void)run("", [&] { return getDriver().EventDestroy(event); });
    if (status.code == StatusCode::CaptureInProgress)
      status.hint = "release sequences before the capture begins";
    return status;
  }

  Result<bool> pass(Mark mark, bool waits) override {
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    auto *event = reinterpret_cast<cuda::Event>(mark);
    bool isPassed = true;
    Status status = run("wait for a stream", [&] {
      cuda::Code code = waits ? getDriver().EventSynchronize(event) : getDriver().EventQuery(event);
      isPassed = code != cuda::NotReady;
      if (!isPassed)
        return cuda::Success;
      return code == cuda::Success ? getDriver().EventDestroy(event) : code;
    });
    if (!status.ok())
      return status;
    return isPassed;
  }

  static cuda::MemoryLocation getLocation(int ordinal) { return {cuda::LocationDevice, ordinal}; }
  static cuda::AllocationProperties getProperties(int ordinal) {
    return {cuda::AllocationPinned, 0, getLocation(ordinal), nullptr, {}};
  }

private:
  const Driver &getDriver() const { return context.getDriver(); }

  /// In the context.
  template <typename Fn> Status run(std::string_view what, Fn call) {
    ContextScope scope(getDriver(), context.get());
    cuda::Code code = scope.getCode();
    return getDriver().check(code == cuda::Success ? call() : code, what);
  }

  /// The driver unmaps what was mapped in one call in one call.
  cuda::Code unmapPieces(size_t offset, size_t count) {
    cuda::Code code = cuda::Success;
    for (size_t i = 0; i < count && code == cuda::Success; ++i)
      code = getDriver().MemUnmap(base + offset + i * pieceBytes, pieceBytes);
    return code;
  }

  DeviceContext context;
  size_t pieceBytes, bytes = 0;
  cuda::Pointer base = 0;
};
} // namespace

Result<std::unique_ptr<AddressSpace>> openDeviceAddresses(int device) {
  Result<DeviceContext> context = DeviceContext::open(device);
  if (!context)
    return context.takeStatus();
  const Driver &driver = context->getDriver();
  int ordinal = context->getInfo().ordinal, isSupported = 0;
  cuda::Device handle = 0;
  cuda::Code code = driver.DeviceGet(&handle, ordinal);
  if (code == cuda::Success)
    code = driver.DeviceGetAttribute(&isSupported, cuda::AttributeVirtualMemory, handle);
  if (code == cuda::Success && (!isSupported || !driver.MemSetAccess))
    return Status{StatusCode::UnsupportedDevice,
                  "expected a GPU with virtual memory, got device " + std::to_string(ordinal),
                  "keep keys and values in tensors, or in pages"};
  size_t pieceBytes = 0;
  if (code == cuda::Success) {
    ContextScope scope(driver, context->get());
    cuda::AllocationProperties properties = DeviceAddresses::getProperties(ordinal);
    code = driver.MemGetAllocationGranularity(&pieceBytes, &properties, cuda::GranularityMinimum);
  }
  if (code != cuda::Success)
    return driver.check(code, "ask for the size of a piece of memory");
  return std::unique_ptr<AddressSpace>(new DeviceAddresses(std::move(*context), pieceBytes));
}

} // namespace attn
