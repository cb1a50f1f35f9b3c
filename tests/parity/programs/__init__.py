"""Random programs of modules and hooks, run on lucid and on PyTorch: same values, gradients and sequence of hook calls.

`parts` are the modules, `machine`, `hooks` and `module_hooks` the acts of a program, `generator` draws and shortens
programs, `compare` runs both sides; ``python -m tests.parity.programs FIRST COUNT`` runs as many as one likes and
prints those that differ.

Where lucid differs from PyTorch on purpose, programs keep away from the difference; users/hooks.md has the reasons.
These are all. Of hooks:

- Backward hooks fire for tensors in lists and dictionaries, PyTorch fires none (5.8): such programs have none
  there. `structured=True` and `with_kwargs=True` of full backward hooks, which PyTorch does not have, are compared
  where they give what a plain hook gives; tests/nn has the rest.
- `register_backward_hook(hook(tensor, grad))` has no peer: in PyTorch a part is called by a function that hangs the
  hooks on its output. One of three arguments is compared with PyTorch's full backward hook.
- Full backward pre-hooks leave outputs that are no tensors out, and have them as None with `aligned=True` (5.3).
- The module's own backward hooks are what a node at its boundary does, in PyTorch they are hooks of that node: a
  user's node hooks come in between, so programs hang none there.
- A root counts for multi-grad hooks, in PyTorch it does not (2.3). Mode "any" waits for a gradient, PyTorch takes
  the None of an unused output or argument for one. PyTorch refuses multi-grad hooks on the inputs of
  `autograd.grad`. In a pass inside of a pass they count what both reach as one, and a posthook at a leaf may get
  `.grad` itself, with what such a pass has added to it.
- A full backward hook gets None where no gradient of its module is known, in PyTorch zeros.
- A hook that another takes off still fires as it was registered (0.3): PyTorch calls it without keyword arguments.
  Always-called hooks, those of registrations and of optimizers take off none of their table, which PyTorch walks while
  they run; one that is registered during a call that raises waits for the next. After an error PyTorch calls
  always-called hooks of all modules without keyword arguments.
- Registration hooks that raise, or return what is none of the kind, lose or break the module's value in PyTorch.
- Multi-grad hooks and gradient edges of leaves work in inference mode, and for leaves made there.
- A tensor hook may hang another on a further output of its node, which can end a process in PyTorch.

- Which of two elements is the larger is asked only where rounding cannot decide it.

Of graphs, views and Functions:

- A root that leads to no input fires no hooks, in PyTorch it does; PyTorch runs the node of an input that is no
  leaf; it returns what hooks of an input were given, if another input lies below it (1.5).
- A node of a leaf lives as long as the leaf: programs keep such nodes, since PyTorch drops them and their hooks.
- A hook on a view from before a change of the view in place fires with the gradient of that version (1.8), in PyTorch
  not any more: views with hooks are not changed.
- Other nodes: a cast is one of its own, the op that changes a view runs beside `CopySlices` and not inside, a view
  that is taken again keeps the nodes of its ops, a linear layer is one node where PyTorch has up to three, numbers,
  masks and indices have places in nodes, and a Function's posthook gets None for what requires no grad. Posthooks that
  would see it hang elsewhere, prehooks that would see indices too, and a leaf that is no matrix is copied for a linear
  layer.
- Views taken where nothing is recorded do not require grad, PyTorch's claim to as soon as their base does: they are
  taken of detached tensors, and forgotten where a parameter is told to require grad.
  What a linear layer returns there for an input that is no matrix is one in PyTorch: programs copy it.
  What a Function returns as a view of an inference tensor has a node; PyTorch's has none.
- On CUDA a new tensor is contiguous, whatever its operands are, in PyTorch it has their strides: no program makes one a
  vector by `view` there.
- Parts made by `chunk`, `split` and `unbind` stay usable after a change of their base, and expanded tensors are changed
  nowhere: such memory is not changed. Nor is the result of an op in place that saves its output, which lucid keeps.
- What was saved and is used after a pass has freed it, or after a parameter was changed that was cast before, is
  refused where PyTorch saved it, and lucid often saved something else: such graphs are forgotten. Programs of two
  dtypes change copies only, and use no inference mode.
- A Function changes a view beside other outputs; PyTorch allows one output. The derivative of what a changed view of
  no elements was requires grad, in PyTorch not: no such view is changed that requires grad.
- What is refused changes nothing: no program changes inference tensors outside of their mode, which PyTorch changes
  and then refuses, but by steps and loads, after which the values are put back; such gradients are dropped before more
  is added.
- PyTorch records no op on inference tensors alone: parameters made in inference mode meet others, or are detached, and
  a linear layer with such a weight records only what requires grad.
- An expanded `.grad` is added to; post-accumulate hooks leave none. `.grad` shares no memory with what `backward` was
  given or a hook returned, nor with another, of which PyTorch's may be views: a second pass gets copies, hooks
  return no views, and gradients that share memory after a pass are parted.
- PyTorch subtracts no bools, and lucid squares none: there and in activations they are kept away from or converted.
- The variance of a single element, or of none, has a derivative that requires grad, in PyTorch a constant NaN.
  The second derivative of the deviation of equal elements is zero, in PyTorch NaN.
- In the second pass of a double backward only what reaches leaves is compared: how derivatives use intermediate
  tensors, and so in which order leaves are reached, is each side's own affair. So is the order of several leaves that
  are roots.

Of checkpoints:

- A recomputation that stops early is no `Exception` to always-called hooks inside (5.9). A checkpoint in a checkpoint
  keeps an argument that is a leaf, and a gradient taken inside of a first run makes it recompute no more than that
  needs: hooks inside take none. Hooks on a tensor and on the same one as it was saved fire in the order of
  registration, in PyTorch tensor by tensor: inside of two no hook hangs any. None makes it recompute nothing: no
  Function that gives None stands behind it. Saved tensors can be read twice inside, and backward runs in inference
  mode, too; with gradients enabled there nothing is recorded. What operations save for what a hook computes inside is
  each side's own.
- A view that cannot be taken again is refused as an argument, in PyTorch where the function uses it: programs look at
  its node before.
- What a checkpoint has saved and is then changed in place is refused, PyTorch does not see it. Where it saves more when
  it runs again, each side takes that in the order in which it saves: a parameter in place of one that requires no grad
  comes when no graph is left.
- Reentrant checkpoints refuse second derivatives, which in PyTorch lack a part, and work inside of a pass of
  `autograd.grad`. A posthook that is hung on their node while it runs waits for its next run. What they return stays
  the leaf that it is: in PyTorch a returned parameter becomes their output, whose backward never ends.

Of modules:

- A failed load changes nothing, so that load hooks come before and after that of all parts (7.2, 7.5); pre-hooks of
  submodules are told how strict the load is, in PyTorch always that it is.
- What an optimizer keeps from a step in inference mode serves later ones outside, in PyTorch these raise: after such a
  step programs go on with a new optimizer.
"""
