"""Compares the probe's Python frames with the interpreter's own account of them.

Usage: exactness.py PROBE. Prints the number of comparisons, or the first that failed and exits with 1.
"""

import asyncio
import contextlib
import ctypes
import functools
import gc
import sys
import threading
import time
import traceback

# The same library twice: called with the GIL released, and with the GIL held.
RELEASED = ctypes.CDLL(sys.argv[1])
HELD = ctypes.PyDLL(sys.argv[1])
for library in (RELEASED, HELD):
    library.probe_capture.argtypes = [ctypes.c_int, ctypes.c_char_p, ctypes.c_size_t]
    library.probe_capture.restype = ctypes.c_size_t

FULL = False
compared = 0
failures = []


def text(library, python_only):
    buffer = ctypes.create_string_buffer(1 << 18)
    size = library.probe_capture(python_only, buffer, len(buffer))
    assert size <= len(buffer)
    return buffer.raw[:size].decode("utf-8")


def frames(library, python_only=0):
    rows = (line.split("\t") for line in text(library, python_only).splitlines())
    # The innermost ones are this helper and the one above.
    return [tuple(row[1:]) for row in rows if row[0] == "P"][2:]


def expected(frame):
    rows = []
    while frame:
        code = frame.f_code
        rows.append((code.co_qualname, code.co_filename, str(frame.f_lineno or 0)))
        frame = frame.f_back
    return rows


def check(what):
    global compared
    for library in (RELEASED, HELD):
        for python_only in (0, 1):
            got, want = frames(library, python_only), expected(sys._getframe())
            compared += 1
            if got != want:
                failures.append((what, got, want))
    got = [(name.rpartition(".")[2], file, line) for name, file, line in frames(RELEASED)][1:]
    want = [(entry.name, entry.filename, str(entry.lineno)) for entry in reversed(traceback.extract_stack())][1:]
    compared += 1
    if got != want:
        failures.append((what + " (traceback)", got, want))
    return True


def plain():
    check("plain")


def generator():
    check("generator")
    yield 1
    yield from inner_generator()


def inner_generator():
    check("yield from")
    yield 2


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(
            *args,
        )

    return wrapper


@decorated
@decorated
def wrapped():
    check("decorated")


@contextlib.contextmanager
def context():
    check("enter")
    yield
    check("exit")


def exceptions():
    try:
        try:
            raise ValueError
        except ValueError:
            check("except")
            raise
        finally:
            check("finally")
    except ValueError:
        check("outer except")
    with context():
        check("with")


class Special:
    check("class body")

    def __init__(self):
        check("init")

    def __getattr__(self, name):
        check("getattr")
        return 1

    def __lt__(self, other):
        return check("lt")

    def __call__(self):
        check("call")

    def __iter__(self):
        yield check("iter")

    def __del__(self):
        check("del")

    @property
    def value(self):
        return check("property")


def multi_line():
    check(
        "first"
    )
    for index in range(
        3
    ):
        (check)(

            index
            and "later" or "later still"
        )


def comprehensions():
    [check("list") for _ in range(2)]
    {check("set") for _ in range(2)}
    {check("key"): check("value") for _ in range(2)}
    list(check("generator expression") for _ in range(2))
    [[check("nested") for _ in range(2)] for _ in range(2)]
    lambda_ = lambda: check(
        "lambda"
    )
    lambda_()


def callbacks():
    list(map(lambda value: check("map"), [1, 2]))
    functools.reduce(lambda a, b: check("reduce"), [1, 2, 3])
    sorted([3, 1, 2], key=lambda value: (check("key"), value)[1])
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)

    def compare(a, b):
        check("qsort")
        return 0

    values = (ctypes.c_int * 4)(4, 3, 2, 1)
    ctypes.CDLL(None).qsort(values, 4, 4, prototype(compare))


async def coroutine(depth):
    check("coroutine")
    await asyncio.sleep(0)
    check("after await")
    if depth:
        await coroutine(depth - 1)
    async for _ in asynchronous():
        check("async for")


async def asynchronous():
    for index in range(2):
        check("async generator")
        yield index
        await asyncio.sleep(0)


async def gathered():
    await asyncio.gather(coroutine(3), coroutine(2))


def deep(depth, then):
    return deep(depth - 1, then) if depth else then()


SOURCE = "def made():\n{}    check('made {}')\n    return 1\n"


def reused_addresses(rounds):
    """Code objects that die at once: the next one often lies at the same address, with other lines."""
    seen = set()
    reused = 0
    for index in range(rounds):
        space = {"check": check}
        exec(compile(SOURCE.format("\n" * (index % 11), index), f"<made {index % 5}>", "exec"), space)
        reused += id(space["made"].__code__) in seen
        seen.add(id(space["made"].__code__))
        space["made"]()
        space.clear()
    return reused


def other_names():
    größe = lambda: check("latin")
    größe()
    exec(compile("def 大きさ(): check('wide')\n大きさ()", "<ファイル 𝕏>", "exec"), {"check": check})


def long_function():
    body = "".join(f"    x{index} = {index}\n" for index in range(800))
    source = f"def long():\n{body}    check('long')\n{body}    check('longer')\n"
    space = {"check": check}
    exec(compile(source, "<long>", "exec"), space)
    space["long"]()


def traced():
    tracer = lambda *_: tracer
    sys.settrace(tracer)
    plain()
    list(generator())
    sys.settrace(None)
    sys.setprofile(lambda *_: None)
    plain()
    sys.setprofile(None)


def specialised():
    def hot(value):
        return check("hot") if value % 500 == 499 else value

    for value in range(2000):
        hot(value)


def threads():
    """Threads that hand the GIL to each other often, while another looks at all stacks and collects garbage."""
    sys.setswitchinterval(1e-4)
    stop = threading.Event()

    def look():
        while not stop.is_set():
            for frame in sys._current_frames().values():
                while frame:
                    frame = frame.f_back
            gc.collect(0)

    def work(depth):
        for _ in range(12):
            deep(depth, plain)
            list(generator())
            reused_addresses(3)

    looker = threading.Thread(target=look)
    workers = [threading.Thread(target=work, args=(depth,)) for depth in range(3, 6)]
    for thread in [looker, *workers]:
        thread.start()
    for thread in workers:
        thread.join()
    stop.set()
    looker.join()


def with_large_stack(then):
    threading.stack_size(256 << 20)
    thread = threading.Thread(target=then)
    thread.start()
    thread.join()
    threading.stack_size(0)


def too_deep():
    """Beyond 1,024 frames the middle is left out, and it is said how many."""
    global compared
    want = expected(sys._getframe())
    lines = text(RELEASED, 1).splitlines()
    python = [tuple(line.split("\t")[1:]) for line in lines if line[0] == "P"]
    left_out = [int(line.split("\t")[1]) for line in lines if line[0] == "E"]
    compared += 1
    # One more than expected: the helper.
    if len(python) != 1024 or left_out != [len(want) + 1 - 1024] or python[2:760] != want[1:759] or python[-250:] != want[-250:]:
        failures.append(("too deep", (len(python), left_out), len(want)))


def collected():
    """A finaliser may run while a frame is being set up: Python does not count such a frame yet."""

    class Cycle:
        def __init__(self):
            self.me = self

        def __del__(self):
            check("collected")

    def with_cells():
        a = b = c = d = 1
        return lambda: (a, b, c, d)

    before = gc.get_threshold()
    for threshold in range(1, 40):
        gc.set_threshold(threshold)
        for _ in range(3):
            Cycle()
            with_cells()
    gc.set_threshold(*before)
    gc.collect()


def interleaved():
    """With full native stacks, what lies between two interpreter frames stands between their Python frames."""
    global compared
    prototype = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p)
    seen = []

    def compare(a, b):
        seen.append([line.split("\t")[:2] for line in text(HELD, 0).splitlines()])
        return 0

    values = (ctypes.c_int * 2)(2, 1)
    ctypes.CDLL(None).qsort(values, 2, 2, prototype(compare))
    rows = seen[0]
    inner = next(index for index, row in enumerate(rows) if row[0] == "P" and row[1].endswith("compare"))
    outer = next(index for index, row in enumerate(rows) if row == ["P", "interleaved"])
    between = [row[1] for row in rows[inner + 1 : outer]]
    kinds = "".join(row[0] for row in rows).strip("N")
    compared += 1
    full = sum("libc.so" in path for path in between) >= 1 and sum("libffi" in path for path in between) >= 2
    if not (full if FULL else not between and set(kinds) == {"P"}):
        failures.append(("interleaved", between, kinds))


def same_id():
    """A stack keeps its number, over the death of a code object that another stack used."""
    global compared
    ids = set()
    for round in range(6):
        ids.add(HELD.probe_id(0))
        if round % 2:
            reused_addresses(1)
    compared += 1
    if len(ids) != 1 or 0 in ids or 1 in ids:
        failures.append(("same id", ids, "one"))


check("module")
plain()
list(generator())
wrapped()
exceptions()
special = Special()
special.value, special.missing, sorted([special, special]), special(), list(special)
del special
comprehensions()
multi_line()
callbacks()
asyncio.run(gathered())
assert reused_addresses(300) > 30
other_names()
long_function()
traced()
specialised()
collected()
threads()
sys.setrecursionlimit(5000)
deep(900, plain)
with_large_stack(lambda: deep(1000, plain))
with_large_stack(lambda: deep(1500, too_deep))
same_id()
interleaved()
RELEASED.probe_full_native(1)
FULL = True
interleaved()
plain()
callbacks()
exceptions()
asyncio.run(gathered())
RELEASED.probe_full_native(0)

if RELEASED.probe_python() != sys.version_info.minor:
    failures.append(("status", RELEASED.probe_python(), sys.version_info.minor))
for what, got, want in failures[:3]:
    print("DIFFERS:", what)
    for a, b in zip(got, want):
        if a != b:
            print("   ", a, "is not", b)
            break
    print("   ", len(got) if hasattr(got, "__len__") else got, "against", len(want) if hasattr(want, "__len__") else want)
print("compared", compared, "failed", len(failures))
sys.exit(bool(failures))
