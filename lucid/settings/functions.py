"""Meanings of functions' parameters: by name for all, and by kind if they differ there.

A kind is named by a function, or by the file or folder of it, as in `lucid.settings.kinds`, which layers share.
"""

from __future__ import annotations

from lucid.settings.kinds import by_kind

_REDUCED = "Dimension, or dimensions, that are reduced; all of them if None."
_ALONG = "Dimension along which it works, negative if counted from the end."
_MATRIX = "Matrices, the last two dimensions; those before count a batch."
_SIZES = "Sizes of the result, one after another or as a sequence."

FUNCTIONS = {
    "self": "The tensor.",
    "input": "The tensor.",
    "other": "Second operand; broadcasts against `input`.",
    "dim": _ALONG,
    "dim0": "The one dimension.",
    "dim1": "The other dimension.",
    "axis0": "The one dimension.",
    "axis1": "The other dimension.",
    "keepdim": "Whether dimensions that are reduced stay, of size 1.",
    "dtype": "Dtype of the result; the usual one of the function if None.",
    "device": "Device of the result, such as ``'cuda'``; the default one if None.",
    "requires_grad": "Whether the result is a leaf of which backward computes the gradient.",
    "pin_memory": "Whether the result is in page-locked memory, on the CPU.",
    "generator": "Where random numbers come from; the default generator of the device if None.",
    "size": _SIZES,
    "tensors": "The tensors.",
    "values": "Values that are taken.",
    "value": "The number that is written.",
    "upper": "Whether the upper triangle is meant, not the lower one.",
    "A": _MATRIX,
    "x1": "First vectors; broadcast against `x2`.",
    "x2": "Second vectors; broadcast against `x1`.",
    "p": "Order of the norm.",
    "inplace": "Whether `input` itself is changed and returned.",
    "mask": "Tensor of bools, True at the elements that are meant; broadcasts against `input`.",
}

FUNCTION_KINDS = by_kind({
    # elementwise
    "elementwise": {"input": "Operand, a tensor of any shape."},
    "add sub subtract rsub": {"alpha": "Factor of `other`."},
    "div divide truedivide": {"rounding_mode": "None for fractions, ``'trunc'`` towards zero, ``'floor'`` downwards."},
    "addcdiv addcmul": {
        "tensor1": "First factor, or the dividend.",
        "tensor2": "Second factor, or the divisor.",
        "value": "Factor of the product, or of the quotient.",
    },
    "lerp": {"end": "What a weight of 1 gives.", "weight": "Share of `end`, a tensor or a number."},
    "clamp clip": {"min": "Lower bound; none if None.", "max": "Upper bound; none if None."},
    "clampmin": {"min": "Lower bound, a tensor or a number."},
    "clampmax": {"max": "Upper bound, a tensor or a number."},
    "where": {
        "condition": "Tensor of bools.",
        "input": "What is taken where it is True, a tensor or a number.",
        "other": "What is taken elsewhere, a tensor or a number.",
    },
    "pow floatpower": {"exponent": "Exponents, a tensor or a number.", "input": "Bases, a tensor or a number."},
    "complex": {"real": "Real parts.", "imag": "Imaginary parts."},
    "polar": {"abs": "Absolute values.", "angle": "Angles in radians."},
    "heaviside": {"values": "What the result is where `input` is zero."},
    "nantonum": {
        "nan": "What NaN becomes; 0 if None.",
        "posinf": "What infinity becomes; the largest finite number if None.",
        "neginf": "What minus infinity becomes; the smallest finite number if None.",
    },
    "round": {"decimals": "Number of decimals; below zero, of zeros in front of the point."},
    "logit": {"eps": "Numbers are first brought into [eps, 1 - eps]; None leaves them as they are."},
    "mvlgamma multigammaln": {"p": "Number of dimensions, at least 1."},
    "polygamma": {"n": "Order of the derivative, at least 0."},
    "fill indexfill": {"value": "The number, or a tensor of no dimension."},
    # reductions
    "sums norms statistics extremes": {"dim": _REDUCED},
    "normalize": {"dim": "Dimension, or dimensions, along which the norm is taken.", "eps": "The smallest divisor."},
    "ranks": {"dim": "Dimension that is reduced; all elements are one row if None."},
    "max min": {"dim": "Dimension that is reduced, all of them if None; or a tensor, the second operand."},
    "cumulative": {"dim": "Dimension along which it works; all elements are one row where None is taken."},
    "norm": {"p": "Order of the norm, a number, ``'fro'`` or ``'nuc'``."},
    "std stdmean var varmean cov": {
        "correction": "What is taken from the number of elements that divides; 1 unless given.",
        "unbiased": "Older form of `correction`: True for 1, False for 0.",
    },
    "cov": {
        "fweights": "How often each observation counts, integers, shape (observations,).",
        "aweights": "Weight of each observation, shape (observations,).",
    },
    "quantile nanquantile": {
        "q": "Shares in [0, 1], a number or a vector.",
        "interpolation": "Between elements: ``'linear'``, ``'lower'``, ``'higher'``, ``'midpoint'`` or ``'nearest'``.",
    },
    "kthvalue": {"k": "Which one, counted from 1, in ascending order."},
    "topk": {
        "k": "Number of elements.",
        "largest": "Whether the largest are meant, not the smallest.",
        "sorted": "Whether they come in order.",
    },
    "sort argsort": {
        "descending": "Whether the largest comes first.",
        "stable": "Whether equal elements keep their order.",
    },
    "unique uniqueconsecutive": {
        "sorted": "Whether the result is in ascending order; it always is.",
        "return_inverse": "Whether the place in the result of each element of `input` is returned too.",
        "return_counts": "Whether the number of occurrences of each is returned too.",
        "dim": "Dimension whose slices are compared; elements are if None.",
    },
    "searchsorted": {
        "sorted_sequence": "Ascending rows, along the last dimension.",
        "input": "What is to be inserted, a tensor or a number.",
        "side": "``'left'`` or ``'right'``, another form of `right`.",
        "sorter": "Indices that sort rows which are in no order, as `argsort` returns them.",
    },
    "bucketize": {
        "input": "What is to be sorted in, a tensor or a number.",
        "boundaries": "Ascending numbers, one row.",
    },
    "searchsorted bucketize": {
        "out_int32": "Whether the result is int32, not int64.",
        "right": "Whether places are behind equal elements.",
    },
    "histc": {
        "bins": "Number of parts.",
        "min": "Lower end of the first part.",
        "max": "Upper end of the last part; if both are 0, the ends are those of the elements.",
    },
    "bincount": {"weights": "What each element counts, not 1.", "minlength": "The smallest size of the result."},
    "isin": {
        "elements": "What is looked for, a tensor or a number.",
        "test_elements": "Where it is looked for, a tensor or a number.",
        "assume_unique": "Accepted for PyTorch's sake.",
        "invert": "Whether the result is True for those that are not there.",
    },
    "allclose isclose": {
        "rtol": "Tolerance as a share of the absolute value of `other`.",
        "atol": "Tolerance that is added to it.",
        "equal_nan": "Whether NaN is close to NaN.",
    },
    "diff": {
        "n": "How often differences are taken.",
        "prepend": "Elements that are joined in front.",
        "append": "Elements that are joined behind.",
    },
    "trapezoid trapz cumulativetrapezoid": {
        "y": "Samples.",
        "x": "Where they lie, of the shape of `y` or of one dimension.",
        "dx": "Their distance where `x` is None; 1 if None.",
    },
    "renorm": {"maxnorm": "The largest norm of a slice.", "dim": "Dimension whose slices they are."},
    # shapes
    "chunk unsafechunk": {"chunks": "Number of parts."},
    "split unsafesplit": {
        "tensor": "The tensor.",
        "split_size_or_sections": "Size of each part, of which the last may be smaller, or the sizes of all.",
    },
    "splitwithsizes unsafesplitwithsizes": {"split_sizes": "Sizes of the parts, which add up."},
    "tensorsplit dsplit hsplit vsplit": {
        "indices_or_sections": "Number of parts, or the indices in front of which it is cut.",
    },
    "squeeze": {"dim": "Dimension, or dimensions, that are left out; all of size 1 if None.", "more": "More of them."},
    "unsqueeze": {"dim": "Where the new dimension is put, negative if counted from the end of the result."},
    "reshape": {
        "shape": "Sizes of the result, one after another or as a sequence; one may be -1.",
        "order": "Order of elements as of ``numpy.reshape``: ``'C'``, ``'F'`` or ``'A'``.",
        "copy": "True for a copy, False for a view or an error, None for a view where memory allows it.",
    },
    "ravel": {"order": "Order of elements as of ``numpy.ravel``: ``'C'``, ``'F'``, ``'A'`` or ``'K'``."},
    "expand broadcastto": {"size": "Sizes of the result; -1 keeps one.", "sizes": "Sizes of the result; -1 keeps one."},
    "broadcastshapes": {"shapes": "The shapes."},
    "permute": {"dims": "Dimensions of `input` in their new order."},
    "movedim moveaxis": {
        "source": "Dimension, or dimensions, that are moved.",
        "destination": "Where they are moved to.",
    },
    "flip": {"dims": "Dimension, or dimensions, along which the order is reversed."},
    "roll": {"shifts": "How far elements are shifted.", "dims": "Along which dimensions; as one row if None."},
    "rot90": {"k": "Number of turns by 90 degrees.", "dims": "The two dimensions of the plane."},
    "tile": {"dims": "Number of copies along each of the last dimensions."},
    "repeatinterleave": {
        "repeats": "How often each is repeated, one number or one for each.",
        "dim": "Dimension whose slices are repeated; all elements, as one row, if None.",
        "output_size": "Accepted for PyTorch's sake.",
    },
    "stack": {"dim": "Where the new dimension is put."},
    "cat concat concatenate": {"dim": "Dimension along which they are joined."},
    "meshgrid": {"tensors": "Vectors.", "indexing": "``'ij'`` for rows of the first, ``'xy'`` for rows of the second."},
    "combinations": {"r": "Number of elements in a row.", "with_replacement": "Whether an element may come again."},
    "diag tril triu": {"diagonal": "Number of the diagonal, 0 for the main one, above it if greater than 0."},
    "diagonal diagembed diagonalscatter": {
        "offset": "Number of the diagonal, 0 for the main one, above it if greater than 0.",
        "dim1": "Dimension of rows.",
        "dim2": "Dimension of columns.",
    },
    "asstrided asstridedscatter": {
        "size": "Sizes of the view.",
        "stride": "Distance in memory, in elements, between neighbours along each dimension.",
        "storage_offset": "Place in memory, in elements, of the first one; that of `input` if None.",
    },
    "pad": {
        "pad": "Numbers of elements, two for each dimension, the last dimension first; below zero, cut off.",
        "mode": "``'constant'``, ``'reflect'``, ``'replicate'`` or ``'circular'``.",
        "value": "The number at the edges in the mode ``'constant'``; 0 if None.",
    },
    # indices
    "index": {
        "dim": "Dimension that the indices count along.",
        "source": "Slices that are written or added, along `dim` as many as indices.",
        "src": "What is written or added.",
    },
    "gather scatter scatteradd scatterreduce": {
        "index": "Indices along `dim`, integers, of as many dimensions as `input`.",
        "src": "What is written or added, at least of the shape of `index`.",
    },
    "scatter": {"reduce": "``'add'`` or ``'multiply'``, with what is there; writes if None."},
    "indexselect indexadd indexcopy indexfill indexreduce": {"index": "Indices along `dim`, one row of integers."},
    "scatterreduce indexreduce": {
        "reduce": "``'sum'``, ``'prod'``, ``'mean'``, ``'amax'`` or ``'amin'``; `index_reduce` takes no sum.",
        "include_self": "Whether the elements of `input` count too.",
    },
    "indexadd": {"alpha": "Factor of `source`."},
    "take put": {"index": "Places among all elements as one row, integers."},
    "takealongdim": {"indices": "Indices along `dim`, integers.", "dim": "Dimension; all is one row if None."},
    "put": {"source": "As many elements as `index` has."},
    "indexput": {
        "indices": "Tensors of integers or bools, one for each of the first dimensions.",
        "values": "What is written; broadcasts to the shape of ``input[indices]``.",
    },
    "put indexput": {"accumulate": "Whether they are added, not written."},
    "select selectscatter": {"index": "The index, negative if counted from the end."},
    "narrow": {"start": "First index.", "length": "Number of indices."},
    "slicescatter": {
        "start": "First index; the beginning if None.",
        "end": "Index behind the last one; the end if None.",
        "step": "Distance between indices.",
    },
    "maskedscatter": {"source": "Elements that are written, in order; at least as many as are True."},
    "nonzero": {"as_tuple": "Whether the result is one tensor of indices for each dimension."},
    "onehot": {"tensor": "Classes, integers.", "num_classes": "Number of classes; one more than the largest if -1."},
    "unravelindex": {"indices": "Places in the order of memory, integers.", "shape": "Sizes that they count in."},
    # linear algebra
    "linalg": {"other": "The second factor."},
    "mv addmv": {"vec": "Vector."},
    "outer ger addr": {"vec2": "Second vector."},
    "addmm addmv addr addbmm baddbmm": {
        "input": "What is added; broadcasts to the product.",
        "mat": "Matrix.",
        "mat1": "First matrix.",
        "mat2": "Second matrix.",
        "vec1": "First vector.",
        "batch1": "First matrices, shape (batch, n, m).",
        "batch2": "Second matrices, shape (batch, m, p).",
        "beta": "Factor of `input`; at 0 it is not read.",
        "alpha": "Factor of the product.",
    },
    "mm bmm": {"mat2": "Second matrix, or matrices."},
    "dot": {"tensor": "Second vector."},
    "tensordot": {
        "a": "First tensor.",
        "b": "Second tensor.",
        "dims": "How many dimensions are summed over, or those of `a` and those of `b`.",
    },
    "einsum": {"args": "The equation, as ``'ij,jk->ik'``, and its operands."},
    "cdist": {
        "x1": "Rows, shape (..., i, k).",
        "x2": "Rows, shape (..., j, k).",
        "compute_mode": "Whether matrices are multiplied for a `p` of 2: always, never, or for more than 25 rows.",
    },
    "vander": {
        "x": "Vector, or vectors.",
        "N": "Number of powers; as many as elements if None.",
        "increasing": "Whether exponents rise.",
    },
    "multidot": {"tensors": "Matrices; the first and the last may be a vector."},
    "vecdot": {"x": "First vectors, of which complex ones are conjugated.", "y": "Second vectors."},
    "matrixpower": {"n": "Exponent; below zero of the inverse.", "input": _MATRIX},
    "vectornorm": {"x": "The tensor."},
    "matrixnorm norm vectornorm": {
        "dim": "Dimension, or dimensions, of the vectors or matrices.",
        "ord": "Order of the norm: a number, or of matrices ``'fro'`` or ``'nuc'``.",
    },
    "cond": {"p": "Order of `matrix_norm`; None for 2."},
    "solve solveex": {"B": "Right-hand sides, of as many rows as `A`, or a vector."},
    "solve solveex solvetriangular lusolve": {"left": "Whether ``A @ X = B`` is solved, not ``X @ A = B``."},
    "solvetriangular lstsq": {"B": "Right-hand sides, of as many rows as `A`."},
    "solvetriangular": {"unitriangular": "Whether the diagonal counts as ones and is not read."},
    "choleskyex invex solveex lufactorex": {
        "check_errors": "Whether a matrix that has no result raises; otherwise ``info`` is not 0.",
    },
    "choleskysolve": {"input": "Right-hand sides.", "L": "Factor of the matrices, as `cholesky` returns it."},
    "choleskyinverse": {"input": "Factor of the matrices, as `cholesky` returns it."},
    "tensorinv": {"ind": "Number of the first dimensions that count the rows."},
    "tensorsolve": {"B": "Right-hand side.", "dims": "Dimensions of `A` that are moved to its end first."},
    "lstsq": {
        "rcond": "Singular values up to this share of the largest count as zeros.",
        "driver": "LAPACK's in PyTorch, ``'gelsd'`` or another; decides here which parts are returned.",
    },
    "pinv pinverse matrixrank": {
        "rcond": "NumPy's name of `rtol`.",
        "rtol": "Singular values up to this share of the largest count as zeros.",
        "atol": "Singular values up to this count as zeros.",
        "tol": "An `atol` beside an `rtol` of 0.",
        "hermitian": "Whether matrices are Hermitian; the lower triangle is read then.",
    },
    "eigh eigvalsh": {"UPLO": "``'L'`` or ``'U'``, the triangle that is read."},
    "svd svdvals": {
        "full_matrices": "Whether U and Vh are square.",
        "driver": "None; PyTorch's choice of a function of cuSOLVER.",
        "some": "Whether U and V have no more columns than there are singular values.",
        "compute_uv": "Whether U and V are computed; otherwise they are zeros.",
    },
    "qr": {
        "mode": "``'reduced'``, ``'complete'`` for a square Q, or ``'r'`` for R alone.",
        "some": "Whether Q is reduced, not square.",
    },
    "lu lufactor lufactorex": {"pivot": "True: rows are exchanged."},
    "lusolve": {
        "LU": "Factors, as `linalg.lu_factor` returns them.",
        "pivots": "Exchanges of rows, as `linalg.lu_factor` returns them.",
        "B": "Right-hand sides.",
        "b": "Right-hand sides.",
        "adjoint": "Whether the adjoint of the matrix stands for it.",
    },
    "lusolve luunpack": {
        "LU_data": "Factors, as `linalg.lu_factor` returns them.",
        "LU_pivots": "Exchanges of rows, as `linalg.lu_factor` returns them.",
        "unpack_data": "Whether the triangles are returned; otherwise they have no elements.",
        "unpack_pivots": "Whether the permutation is returned; otherwise it has no elements.",
    },
    "ormqr orgqr householderproduct": {
        "input": "Columns that hold the reflections, below the diagonal.",
        "tau": "Factor of each reflection.",
        "other": "Matrices that are multiplied.",
        "left": "Whether the product of reflections stands on the left.",
        "transpose": "Whether the adjoint of the product of reflections is taken.",
    },
})  # fmt: skip
