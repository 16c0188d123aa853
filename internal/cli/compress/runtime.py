"""Times a model in ONNX Runtime through the C interface of its library, with nothing but Python's standard library.

Usage: runtime.py LIBRARY MODEL BATCH THREADS SECONDS OUTPUTS [DIMS FILE]...

Each DIMS FILE is a batch of the only input: its shape, as 8x3x32x32, and its float32 values in the machine's order.
Without one, the inputs are random, the same for each model. It prints batch=N, then latency_ms=T for each run, and
writes all float32 outputs of the first run of each batch to OUTPUTS.
"""
import array
import ctypes as c
import random
import sys
import time

# Places of the functions in struct OrtApi. New versions of ONNX Runtime add to its end.
AT = {
    "GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "Run": 9, "CreateSessionOptions": 10,
    "SetIntraOpNumThreads": 24, "SessionGetInputCount": 30, "SessionGetOutputCount": 31, "SessionGetInputTypeInfo": 33,
    "SessionGetInputName": 36, "SessionGetOutputName": 37, "CreateTensorWithDataAsOrtValue": 49,
    "GetTensorMutableData": 51, "CastTypeInfoToTensorInfo": 55, "GetTensorElementType": 60, "GetDimensionsCount": 61,
    "GetDimensions": 62, "GetTensorShapeElementCount": 64, "GetTensorTypeAndShape": 65, "CreateCpuMemoryInfo": 69,
    "GetAllocatorWithDefaultOptions": 78,
}
FLOAT, INT32, INT64, BOOL = 1, 6, 7, 9  # ONNXTensorElementDataType
CODES = {FLOAT: "f", INT32: "i", INT64: "q", BOOL: "b"}
LARGEST = 1 << 28  # values of an input


class Base(c.Structure):
    _fields_ = [("get", c.CFUNCTYPE(c.POINTER(c.c_void_p), c.c_uint32)), ("version", c.CFUNCTYPE(c.c_char_p))]


def load(path):
    """Returns a function that calls a function of the library by its name, and its version."""
    try:
        library = c.CDLL(path)
        library.OrtGetApiBase.restype = c.POINTER(Base)
    except (OSError, AttributeError) as e:
        sys.exit("%s is no library of ONNX Runtime that loads here: %s" % (path, e))
    base = library.OrtGetApiBase().contents
    table = base.get(1)  # the first version has all that is called
    message = c.CFUNCTYPE(c.c_char_p, c.c_void_p)(table[AT["GetErrorMessage"]])

    def call(name, *args):
        status = c.CFUNCTYPE(c.c_void_p, *[type(a) for a in args])(table[AT[name]])(*args)
        if status:
            sys.exit("ONNX Runtime: " + message(status).decode(errors="replace"))

    def value(kind, name, *args):
        out = kind()
        call(name, *args, c.cast(c.byref(out), c.c_void_p))
        return out

    return call, value, base.version().decode()


def shape_of(call, value, info):
    count = value(c.c_size_t, "GetDimensionsCount", info).value
    dims = (c.c_int64 * count)()
    call("GetDimensions", info, c.cast(dims, c.c_void_p), c.c_size_t(count))
    return list(dims)


def made(name, kind, dims, batch, rng):
    """Returns the shape and the values of a random input."""
    if kind not in CODES:
        sys.exit("input %s has type %d: --runtime makes float32, int32, int64 and bool" % (name, kind))
    if dims and dims[0] < 1:
        dims[0] = batch
    if any(d < 1 for d in dims):
        sys.exit("input %s has a free size besides the batch, %s: give batches with --calibration" % (name, dims))
    count = 1
    for d in dims:
        count *= d
    if count > LARGEST:
        sys.exit("input %s has %d values: at most %d" % (name, count, LARGEST))
    if kind == FLOAT:
        return dims, array.array("f", (rng.uniform(-1.7, 1.7) for _ in range(count)))
    return dims, array.array(CODES[kind], [1]) * count


def main():
    path, model, batch, threads, seconds, outputs = sys.argv[1:7]
    files = [([int(d) for d in dims.split("x")], file) for dims, file in zip(sys.argv[7::2], sys.argv[8::2])]
    call, value, version = load(path)
    pointer = c.c_void_p
    env = value(pointer, "CreateEnv", c.c_int(3), c.c_char_p(b"scrimp"))
    options = value(pointer, "CreateSessionOptions")
    call("SetIntraOpNumThreads", options, c.c_int(int(threads)))
    session = value(pointer, "CreateSession", env, c.c_char_p(model.encode()), options)
    allocator = value(pointer, "GetAllocatorWithDefaultOptions")
    memory = value(pointer, "CreateCpuMemoryInfo", c.c_int(0), c.c_int(0))

    inputs = []
    for i in range(value(c.c_size_t, "SessionGetInputCount", session).value):
        name = value(c.c_char_p, "SessionGetInputName", session, c.c_size_t(i), allocator).value
        of = value(pointer, "SessionGetInputTypeInfo", session, c.c_size_t(i))
        info = value(pointer, "CastTypeInfoToTensorInfo", of)
        if not info:
            sys.exit("input %s is no tensor" % name.decode())
        inputs.append((name, value(c.c_int, "GetTensorElementType", info).value, shape_of(call, value, info)))
    count = value(c.c_size_t, "SessionGetOutputCount", session).value
    results = [value(c.c_char_p, "SessionGetOutputName", session, c.c_size_t(i), allocator).value for i in range(count)]

    batches = []
    for dims, file in files:
        values = array.array("f")
        with open(file, "rb") as f:
            values.frombytes(f.read())
        batches.append([(FLOAT, dims, values)])
    if not batches:
        rng = random.Random(1)
        batches = [[(kind, *made(name.decode(), kind, dims, int(batch), rng)) for name, kind, dims in inputs]]
    elif len(inputs) != 1 or inputs[0][1] != FLOAT:
        sys.exit("the batches are of one float32 input, and the model has others")

    def ready(tensors):
        held = []
        for kind, dims, values in tensors:
            at, size = values.buffer_info()
            held.append(value(pointer, "CreateTensorWithDataAsOrtValue", memory, pointer(at),
                              c.c_size_t(size * values.itemsize), c.cast((c.c_int64 * len(dims))(*dims), pointer),
                              c.c_size_t(len(dims)), c.c_int(kind)))
        return (pointer * len(held))(*held)

    names = (c.c_char_p * len(inputs))(*[name for name, _, _ in inputs])
    wanted = (c.c_char_p * count)(*results)
    fed = [ready(b) for b in batches]
    out = (pointer * count)()

    def run(of):
        call("Run", session, pointer(), c.cast(names, pointer), c.cast(of, pointer), c.c_size_t(len(inputs)),
             c.cast(wanted, pointer), c.c_size_t(count), c.cast(out, pointer))

    with open(outputs, "wb") as f:
        for of in fed:
            out = (pointer * count)()
            run(of)
            for one in out:
                info = value(pointer, "GetTensorTypeAndShape", pointer(one))
                if value(c.c_int, "GetTensorElementType", info).value == FLOAT:
                    size = 4 * value(c.c_size_t, "GetTensorShapeElementCount", info).value
                    if size:
                        f.write(c.string_at(value(pointer, "GetTensorMutableData", pointer(one)), size))
    # From here on each run writes into the outputs of the last batch.
    print("runtime=%s" % version)
    print("batch=%d" % (batches[-1][0][1] or [1])[0])
    of = fed[-1]
    for _ in range(3):
        run(of)
    begun, n = time.perf_counter(), 0
    while n < 20 or (time.perf_counter() - begun < float(seconds) and n < 10000):
        at = time.perf_counter()
        run(of)
        print("latency_ms=%.6f" % (1000 * (time.perf_counter() - at)))
        n += 1


main()
