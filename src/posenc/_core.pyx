# cython: boundscheck=False, wraparound=False, initializedcheck=False, embedsignature=False
# cython: freethreading_compatible=True
"""The gate between Python and the C kernels: buffers in, the GIL released, the one parallel loop.

Everything here trusts its caller, ``_encoding``, to have checked sizes, types and the domain.
"""

from cpython.buffer cimport PyBUF_STRIDES, PyBUF_WRITABLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.mem cimport PyMem_Free, PyMem_Malloc
from cpython.pycapsule cimport PyCapsule_GetPointer, PyCapsule_IsValid, PyCapsule_SetName
from cython.parallel cimport prange
from libc.math cimport INFINITY, NAN
from libc.stdint cimport int32_t, int64_t, uint8_t, uint16_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from *:
    """
    #ifdef _OPENMP
    #include <omp.h>
    #define POSENC_OPENMP_DATE _OPENMP
    #else
    #define omp_get_max_threads() 1
    #define omp_in_parallel() 0
    #define POSENC_OPENMP_DATE 0
    #endif
    """
    const int POSENC_OPENMP_DATE
    int omp_get_max_threads() nogil
    int omp_in_parallel() nogil

cdef extern from "kernel.h" nogil:
    const int POSENC_CHUNK
    const int POSENC_FLOAT32
    const int POSENC_FLOAT64
    const int POSENC_FLOAT16
    const int POSENC_BFLOAT16
    const int POSENC_ADD
    const int POSENC_ROTATE
    const double POSENC_DOUBLE_BOUND
    const double POSENC_DOUBLE_DOUBLE_BOUND

    ctypedef struct posenc_waves:
        Py_ssize_t n
        const double *turns
        double largest
        int exact

    ctypedef struct posenc_job:
        posenc_waves waves
        Py_ssize_t dim
        Py_ssize_t columns
        int interleaved
        Py_ssize_t second
        int cos_first
        double amplitude
        double scale
        int64_t start
        int64_t step
        const int64_t *integers
        const double *reals
        Py_ssize_t length
        const char *where
        int dtype
        char *out
        Py_ssize_t row_stride
        int stream
        const double *rotations
        double fast_bound
        double accurate_bound
        double (*settle)(void *context, Py_ssize_t row, Py_ssize_t column) noexcept
        void *context

    ctypedef struct posenc_axes:
        int count
        Py_ssize_t *size
        Py_ssize_t *x
        Py_ssize_t *out
        Py_ssize_t *where

    ctypedef struct posenc_sum:
        int use
        int dtype
        double scale
        int interleaved
        int cos_first
        Py_ssize_t width
        const char *x
        char *out
        const char *where
        Py_ssize_t x_step
        Py_ssize_t out_step
        posenc_axes rows
        posenc_axes batch
        Py_ssize_t batch_size
        int stream

    ctypedef struct posenc_piece:
        int axis
        Py_ssize_t begin
        Py_ssize_t size

    ctypedef struct posenc_grid:
        char *out
        int axes
        Py_ssize_t *size
        Py_ssize_t *step
        int pieces
        posenc_piece *piece
        int stream

    ctypedef struct posenc_environment:
        pass

    ctypedef struct posenc_kernel:
        const char *name

    const posenc_kernel *posenc_kernels[]
    const int posenc_kernel_count
    int posenc_kernel_runs(int i)
    Py_ssize_t posenc_items(const posenc_job *job)
    int posenc_parts(int dtype)
    Py_ssize_t posenc_shift(const void *out, Py_ssize_t size)
    Py_ssize_t posenc_rotations_size(Py_ssize_t m, int interleaved, int parts)
    int posenc_fill(const posenc_kernel *kernel, const posenc_job *job, Py_ssize_t item)
    Py_ssize_t posenc_sum_items(const posenc_job *job, const posenc_sum *sum)
    void posenc_cut(const posenc_job *job, posenc_sum *sum)
    int posenc_add(const posenc_kernel *kernel, const posenc_job *job, const posenc_sum *sum, Py_ssize_t item)
    void posenc_rotations(const posenc_kernel *kernel, const posenc_waves *waves, int interleaved, int parts,
                          double *rotations)
    void posenc_geometric(const uint32_t *first, int first_exponent, const uint32_t *ratio, int ratio_exponent,
                          Py_ssize_t n, double *series)
    void posenc_spread(const posenc_grid *grid, Py_ssize_t begin, Py_ssize_t end)
    posenc_environment posenc_enter_default()
    void posenc_leave_default(posenc_environment callers)
    int posenc_threads_possible(int wanted)
    void posenc_watch_forks()
    int posenc_is_forked()


# ---- kernels ---------------------------------------------------------------------------------------------------------

cdef dict _runnable():
    return {posenc_kernels[i].name.decode(): i for i in range(posenc_kernel_count) if posenc_kernel_runs(i)}

cdef dict _kernels = _runnable()
cdef const posenc_kernel *_kernel = NULL

KERNELS = tuple(_kernels)  # the names of those that run here, slowest first
OPENMP = POSENC_OPENMP_DATE  # the version's date, 0 without


def use_kernel(str name):
    """Make ``name``, one of KERNELS, the kernel of all later calls."""
    global _kernel
    _kernel = posenc_kernels[<int>_kernels[name]]


def kernel():
    """The name of the kernel in use."""
    return _kernel.name.decode()


use_kernel(KERNELS[len(KERNELS) - 1])


CHUNK = POSENC_CHUNK  # rows that a thread takes at a time

# dtypes, as the numbers that ``fill`` and ``Rotations`` take
FLOAT32, FLOAT64, FLOAT16, BFLOAT16 = POSENC_FLOAT32, POSENC_FLOAT64, POSENC_FLOAT16, POSENC_BFLOAT16


# ---- frequencies -----------------------------------------------------------------------------------------------------

def geometric(bytes first, int first_exponent, bytes ratio, int ratio_exponent, double[:, ::1] series):
    """Write first * ratio**k into the three rows of ``series``; see posenc_geometric for the numbers' form."""
    cdef uint32_t[8] first_limbs
    cdef uint32_t[8] ratio_limbs
    if len(first) != 32 or len(ratio) != 32:
        raise ValueError("mantissas are 32 bytes")
    memcpy(first_limbs, <const char *>first, 32)
    memcpy(ratio_limbs, <const char *>ratio, 32)
    if series.shape[1]:
        with nogil:
            posenc_geometric(first_limbs, first_exponent, ratio_limbs, ratio_exponent, series.shape[1], &series[0, 0])


cdef class Waves:
    """Frequencies in turns per position, each an unevaluated sum of three doubles: a private copy of ``series``, (3, n).

    ``exact``: each is one double, without an error.
    """

    cdef posenc_waves waves
    cdef readonly Py_ssize_t nbytes

    def __cinit__(self, const double[:, ::1] series, bint exact):
        cdef Py_ssize_t k, n = series.shape[1]
        self.nbytes = 3 * n * sizeof(double)
        cdef double *turns = <double *>PyMem_Malloc(self.nbytes)
        if turns == NULL:
            raise MemoryError
        self.waves.n = n
        self.waves.exact = exact
        self.waves.largest = 0.0
        for k in range(n):
            self.waves.largest = max(self.waves.largest, abs(series[0, k]))
        self.waves.turns = turns
        if n:
            memcpy(turns, &series[0, 0], self.nbytes)

    def __dealloc__(self):
        PyMem_Free(<void *>self.waves.turns)


def shift_of(out):
    """By how many doubles rotations are to be out of line, so that they are in line where ``out`` is."""
    cdef Py_buffer view
    PyObject_GetBuffer(out, &view, PyBUF_STRIDES)
    cdef Py_ssize_t shift = posenc_shift(view.buf, view.itemsize)
    PyBuffer_Release(&view)
    return shift


def rotations_nbytes(Py_ssize_t n, bint interleaved, int dtype):
    """What Rotations of n frequencies would take."""
    return posenc_rotations_size(n, interleaved, posenc_parts(dtype)) * sizeof(double)


cdef class Rotations:
    """The rotations by 1/2, 3/2, ... positions that rows are made with, for one layout, dtype and ``shift_of(out)``."""

    cdef double *rotations
    cdef void *memory
    cdef readonly Py_ssize_t nbytes

    def __cinit__(self, Waves waves, bint interleaved, int dtype, Py_ssize_t shift):
        cdef int parts = posenc_parts(dtype)
        self.nbytes = rotations_nbytes(waves.waves.n, interleaved, dtype)
        self.memory = PyMem_Malloc(self.nbytes + 64 + shift * sizeof(double))
        if self.memory == NULL:
            raise MemoryError
        self.rotations = <double *>((<size_t>self.memory + 63) & ~<size_t>63) + shift
        with nogil:
            posenc_rotations(_kernel, &waves.waves, interleaved, parts, self.rotations)

    def __dealloc__(self):
        PyMem_Free(self.memory)


# ---- tables ----------------------------------------------------------------------------------------------------------

cdef class Layout:
    """Where sines and cosines stand in a row, and what they are multiplied by: amplitude * scale, a power of two."""

    cdef bint interleaved, cos_first
    cdef Py_ssize_t columns
    cdef double amplitude, scale

    def __cinit__(self, bint interleaved, bint cos_first, Py_ssize_t columns, double amplitude, double scale):
        self.interleaved = interleaved
        self.cos_first = cos_first
        self.columns = columns
        self.amplitude = amplitude
        self.scale = scale


cdef class _Settling:
    """What settles entries, called from any thread, and the first exception it ended in."""

    cdef object entry, form, points
    cdef BaseException error

    def __cinit__(self, entry, form, points):
        self.entry = entry
        self.form = form
        self.points = points

    cdef object position(self, Py_ssize_t row):
        if isinstance(self.points, int):
            return self.points + row
        return self.points[row] if isinstance(self.points, range) else self.points.item(row)


cdef double _settle(void *context, Py_ssize_t row, Py_ssize_t column) noexcept with gil:
    cdef _Settling settling = <_Settling>context
    try:
        return settling.entry(settling.form, settling.position(row), column)
    except BaseException as error:
        settling.error = settling.error or error
        return NAN


cdef void _describe(posenc_job *job, int dtype, Waves waves, Rotations rotations, Layout layout, double fast_bound,
                    double accurate_bound):
    job.waves = waves.waves
    job.columns = layout.columns
    job.interleaved = layout.interleaved
    job.second = waves.waves.n
    job.cos_first = layout.cos_first
    job.amplitude = layout.amplitude
    job.scale = layout.scale
    job.dtype = dtype
    job.rotations = NULL if rotations is None else rotations.rotations
    job.accurate_bound = accurate_bound or POSENC_DOUBLE_DOUBLE_BOUND
    if layout.scale != 1.0:
        job.fast_bound = INFINITY
    elif fast_bound:
        job.fast_bound = fast_bound
    else:
        job.fast_bound = POSENC_DOUBLE_DOUBLE_BOUND if dtype == POSENC_FLOAT64 else POSENC_DOUBLE_BOUND


cdef const void *_address(object array) except NULL:
    cdef Py_buffer view
    PyObject_GetBuffer(array, &view, PyBUF_STRIDES)
    cdef const void *address = view.buf
    PyBuffer_Release(&view)
    return address


cdef int _set_points(posenc_job *job, object points) except -1:
    """Positions: the first of consecutive ones, a range, or a contiguous array of int64 or float64."""
    job.start = 0
    job.step = 1
    job.integers = NULL
    job.reals = NULL
    if isinstance(points, int):
        job.start = points
    elif isinstance(points, range):
        job.start = points.start
        job.step = points.step
    elif points.dtype.kind == "i":
        job.integers = <const int64_t *>_address(points)
    else:
        job.reals = <const double *>_address(points)
    return 0


cdef Py_ssize_t _together(Py_ssize_t items, Py_ssize_t nbytes, int threads):
    """How many neighbours of ``items``, ``nbytes`` of output in all, a thread takes at a time.

    They fill a huge page, if that leaves enough for all: threads that touch the same new page wait for each other, or clear it
    twice.
    """
    return max(1, min(items * (2 << 20) // max(nbytes, 1), items // (4 * threads)))


def fill(out, points, form, Waves waves, Rotations rotations, Layout layout, int threads, bint stream, entry,
         double fast_bound=0.0, double accurate_bound=0.0, where=None, second=None):
    """Write encodings into ``out`` (2-D, rows contiguous, elements of the dtype's size), a row for each position.

    ``points`` are the first of consecutive positions, a range, or a contiguous array of int64 or float64; ``where`` is None or
    contiguous booleans, False for rows of zeros. A concatenated layout's second half goes into ``second``, if given, an array
    of the same strides as ``out``. With threads > 1 the caller has asked ``may_go_parallel``. ``entry(form, position, column)``
    is asked for what arithmetic in double-double cannot prove; ``form.code`` is the dtype's number. Bounds other than 0 replace
    the proven ones.
    """
    cdef posenc_job job
    cdef Py_buffer view
    cdef _Settling settling = _Settling(entry, form, points)
    cdef int dtype = form.code
    cdef Py_ssize_t items, together, i
    cdef int end, worst = 0
    cdef const posenc_kernel *chosen = _kernel
    _describe(&job, dtype, waves, rotations, layout, fast_bound, accurate_bound)
    _set_points(&job, points)
    job.where = NULL
    if where is not None:
        job.where = <const char *>_address(where)
    job.stream = stream
    job.settle = _settle
    job.context = <void *>settling
    PyObject_GetBuffer(out, &view, PyBUF_STRIDES | PyBUF_WRITABLE)
    try:
        job.length = view.shape[0]
        job.dim = view.shape[1]
        job.out = <char *>view.buf
        job.row_stride = view.strides[0]
        if second is not None:
            job.second = (<const char *>_address(second) - <const char *>view.buf) // view.itemsize
        items = posenc_items(&job)
        threads = posenc_threads_possible(min(threads, items))
        together = _together(items, job.length * job.dim * view.itemsize, threads)
        with nogil:
            if threads > 1:
                for i in prange(items, num_threads=threads, schedule="dynamic", chunksize=together):
                    end = posenc_fill(chosen, &job, i)
                    worst |= end
            else:
                for i in range(items):
                    worst |= posenc_fill(chosen, &job, i)
    finally:
        PyBuffer_Release(&view)
    _check_end(worst, settling)


cdef int _check_end(int end, _Settling settling) except -1:
    if settling.error is not None:
        raise settling.error
    if end:
        raise MemoryError("no memory for a tile's rows and rotations")
    return 0


# ---- sums ------------------------------------------------------------------------------------------------------------

cdef Py_ssize_t _set_axes(posenc_axes *axes, list given) except -1:
    cdef Py_ssize_t size = 1
    axes.count = len(given)
    for i, axis in enumerate(given):
        axes.size[i], axes.x[i], axes.out[i], axes.where[i] = axis
        size *= axes.size[i]
    return size


cdef class Sum:
    """out = scale * x + encodings or, with ``pairs``, x rotated; in work items that ``write`` computes.

    ``pairs`` is (interleaved, cos_first), of x; then ``layout`` is concatenated and ``form``, of the rows, float64.

    ``rows`` and ``batch`` are the axes along which positions go and those that share them, outermost first: (size, bytes
    from element to element in x, in out, in where). ``where`` is None or booleans. The rest is as for ``fill``.
    """

    cdef posenc_job job
    cdef posenc_sum sum
    cdef const posenc_kernel *kernel
    cdef _Settling settling
    cdef tuple kept
    cdef Py_ssize_t nbytes
    cdef readonly Py_ssize_t items

    def __cinit__(self, x, out, where, points, list rows, list batch, int dtype, double scale, form, Waves waves,
                  Rotations rotations, Layout layout, bint stream, entry, double fast_bound=0.0, double accurate_bound=0.0,
                  tuple pairs=None):
        self.kernel = _kernel
        self.settling = _Settling(entry, form, points)
        self.kept = (x, out, where, points, waves, rotations)
        _describe(&self.job, form.code, waves, rotations, layout, fast_bound, accurate_bound)
        self.job.length = _set_axes(&self.sum.rows, rows)
        self.sum.width = x.shape[x.ndim - 1]
        self.job.dim = self.sum.width if pairs is None else layout.columns
        self.sum.use = POSENC_ADD
        if pairs is not None:
            self.sum.use = POSENC_ROTATE
            self.sum.interleaved, self.sum.cos_first = pairs
        self.job.settle = _settle
        self.job.context = <void *>self.settling
        _set_points(&self.job, points)
        self.sum.batch_size = _set_axes(&self.sum.batch, batch)
        self.sum.dtype = dtype
        self.sum.scale = scale
        self.sum.x = <const char *>_address(x)
        self.sum.out = <char *>_address(out)
        if where is not None:
            self.sum.where = <const char *>_address(where)
        self.sum.x_step = x.strides[x.ndim - 1]
        self.sum.out_step = out.strides[x.ndim - 1]
        self.sum.stream = stream
        self.nbytes = out.nbytes
        posenc_cut(&self.job, &self.sum)
        self.items = posenc_sum_items(&self.job, &self.sum)

    def write(self, Py_ssize_t begin, Py_ssize_t end, int threads):
        """Compute the work items begin .. end - 1."""
        cdef Py_ssize_t i
        cdef int how, worst = 0
        threads = posenc_threads_possible(min(threads, end - begin))
        cdef Py_ssize_t together = _together(end - begin, self.nbytes * (end - begin) // self.items, threads)
        with nogil:
            if threads > 1:
                for i in prange(begin, end, num_threads=threads, schedule="dynamic", chunksize=together):
                    how = posenc_add(self.kernel, &self.job, &self.sum, i)
                    worst |= how
            else:
                for i in range(begin, end):
                    worst |= posenc_add(self.kernel, &self.job, &self.sum, i)
        _check_end(worst, self.settling)


# ---- grids -----------------------------------------------------------------------------------------------------------

def spread(out, list pieces, Py_ssize_t begin, Py_ssize_t end, int threads, bint stream):
    """Copy ``pieces`` of the rows ``begin`` .. ``end`` - 1 of ``out`` from where they are already.

    ``out`` has a grid's axes and that of its columns, which is contiguous. A piece is (axis, first column, columns): its
    entries are known where the indices along all other axes are 0. Axis -1 is for zeros.
    """
    cdef posenc_grid grid
    cdef Py_ssize_t i, items, together, size = out.itemsize
    grid.out = <char *>_address(out)
    grid.axes = out.ndim - 1
    for i in range(grid.axes):
        grid.size[i], grid.step[i] = out.shape[i], out.strides[i]
    grid.pieces = len(pieces)
    for i, (axis, first, columns) in enumerate(pieces):
        grid.piece[i].axis, grid.piece[i].begin, grid.piece[i].size = axis, first * size, columns * size
    grid.stream = stream
    cdef Py_ssize_t row = out.shape[grid.axes] * size, rows = max(1, (256 << 10) // row)  # of an item
    items = (end - begin + rows - 1) // rows
    threads = posenc_threads_possible(min(threads, items))
    together = _together(items, (end - begin) * row, threads)
    with nogil:
        if threads > 1:
            for i in prange(items, num_threads=threads, schedule="dynamic", chunksize=together):
                posenc_spread(&grid, begin + i * rows, min(begin + (i + 1) * rows, end))
        else:
            posenc_spread(&grid, begin, end)


# ---- memory of other packages ----------------------------------------------------------------------------------------

# DLPack's structures as its header lays them out: those of version 1, and those before it, which have no version.

cdef struct _Tensor:
    char *data
    int32_t device_type
    int32_t device_number
    int32_t ndim
    uint8_t code
    uint8_t bits
    uint16_t lanes
    int64_t *shape
    int64_t *strides  # in elements; NULL if the elements stand in C's order
    uint64_t byte_offset

cdef struct _Unversioned:
    _Tensor tensor
    void *context
    void (*deleter)(_Unversioned *) noexcept

cdef struct _Versioned:
    uint32_t first_number
    uint32_t second_number
    void *context
    void (*deleter)(_Versioned *) noexcept
    uint64_t flags
    _Tensor tensor


cdef class Lent:
    """What a DLPack capsule lends: it is used up, and the memory given back when this goes. Nothing is read of the memory.

    ``device`` is (type, number), ``dtype`` (code, bits, lanes), ``strides`` counts elements and is None in C's order. ``flags``
    is None if the lender does not know of versions, and so cannot say that the memory is read-only.
    """

    cdef _Unversioned *unversioned
    cdef _Versioned *versioned
    cdef readonly size_t address
    cdef readonly tuple device, dtype, shape, strides
    cdef readonly object flags

    def __cinit__(self, capsule):
        cdef _Tensor *tensor
        if PyCapsule_IsValid(capsule, "dltensor_versioned"):
            self.versioned = <_Versioned *>PyCapsule_GetPointer(capsule, "dltensor_versioned")
            PyCapsule_SetName(capsule, "used_dltensor_versioned")
            if self.versioned.first_number != 1:  # the rest may stand elsewhere
                raise BufferError(f"its DLPack is of version {self.versioned.first_number}, and only 1 is known")
            self.flags = self.versioned.flags
            tensor = &self.versioned.tensor
        elif PyCapsule_IsValid(capsule, "dltensor"):
            self.unversioned = <_Unversioned *>PyCapsule_GetPointer(capsule, "dltensor")
            PyCapsule_SetName(capsule, "used_dltensor")
            tensor = &self.unversioned.tensor
        else:
            raise TypeError(f"its __dlpack__ returned no capsule of DLPack, but {type(capsule).__name__}")
        if not 0 <= tensor.ndim <= 64 or (tensor.ndim and tensor.shape == NULL):
            raise BufferError(f"it has {tensor.ndim} axes")
        self.device = tensor.device_type, tensor.device_number
        self.dtype = tensor.code, tensor.bits, tensor.lanes
        self.shape = tuple([tensor.shape[i] for i in range(tensor.ndim)])
        self.strides = None if tensor.strides == NULL else tuple([tensor.strides[i] for i in range(tensor.ndim)])
        self.address = <size_t>tensor.data + tensor.byte_offset

    def __dealloc__(self):
        if self.versioned != NULL and self.versioned.deleter != NULL:
            self.versioned.deleter(self.versioned)
        if self.unversioned != NULL and self.unversioned.deleter != NULL:
            self.unversioned.deleter(self.unversioned)


# ---- arithmetic ------------------------------------------------------------------------------------------------------

cdef class DefaultArithmetic:
    """A context in which this thread rounds to nearest and keeps subnormals, whatever its caller has it do."""

    cdef posenc_environment callers

    def __enter__(self):
        self.callers = posenc_enter_default()

    def __exit__(self, *_):
        posenc_leave_default(self.callers)


# ---- threads ---------------------------------------------------------------------------------------------------------

posenc_watch_forks()


def openmp_threads():
    """OpenMP's own number of threads now: OMP_NUM_THREADS, or the processors, or what threadpoolctl has set."""
    return omp_get_max_threads()


def may_go_parallel():
    """False in a forked child, where OpenMP's threads are gone, and inside another parallel region."""
    return POSENC_OPENMP_DATE != 0 and not posenc_is_forked() and not omp_in_parallel()


def is_forked():
    """Whether this process was forked after posenc was imported."""
    return bool(posenc_is_forked())
