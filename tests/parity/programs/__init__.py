"""Random programs of modules and hooks, run on lucid and on PyTorch: same values, gradients and sequence of hook calls.

`parts` are the modules, `machine`, `hooks` and `module_hooks` the acts of a program, `generator` draws and shortens
programs, `compare` runs both sides; ``python -m tests.parity.programs FIRST COUNT`` runs as many as one likes and
prints those that differ.

Where lucid's contract for hooks differs from PyTorch, programs keep away from the difference. These are all:

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
  `autograd.grad`.
- A full backward hook gets None where no gradient of its module is known, in PyTorch zeros.
- A root that leads to no input fires no hooks, in PyTorch it does; PyTorch runs the node of an input that is no
  leaf; it returns what hooks of an input were given, if another input lies below it (1.5).
- A node of a leaf lives as long as the leaf: programs keep such nodes, since PyTorch drops them and their hooks.
- A hook on a view from before a change of the view in place fires with the gradient of that version (1.8), in PyTorch
  not any more: views with hooks are not changed.
- A hook that another takes off still fires as it was registered (0.3): PyTorch calls it without keyword arguments.
  Always-called hooks, and those of optimizers, take off none of their table, which PyTorch walks while they run; one
  that is registered during a call that raises waits for the next. After an error PyTorch calls always-called hooks of
  all modules without keyword arguments.
- In a pass inside of a pass PyTorch's multi-grad hooks count what both reach as one, and a posthook at a leaf may get
  `.grad` itself, with what such a pass has added to it.
- Registration hooks that raise, or return what is none of the kind, lose or break the module's value in PyTorch.
- A recomputation that stops early is no `Exception` to always-called hooks (5.9). A checkpoint in a checkpoint
  keeps an argument that is a leaf, and a gradient taken inside of a first run makes it recompute no more than that
  needs.
- Reentrant checkpoints refuse second derivatives, which in PyTorch lack a part. What they return stays the leaf
  that it is: in PyTorch a returned parameter becomes their output, whose backward never ends. Which use of an
  argument that they, or a checkpoint in a checkpoint, change in place is refused differs.
- A failed load changes nothing, so that load hooks come before and after that of all parts (7.2, 7.5); pre-hooks of
  submodules are told how strict the load is, in PyTorch always that it is.
- A program may amplify rounding: in that of seed 122046 one unit in the last place grows 394 times whenever a part
  is applied to its own output near a value of 0, to 2.6e-10 after three times.
- In the second pass of a double backward only what reaches leaves is compared: how derivatives use intermediate
  tensors, and so in which order leaves are reached, is each side's own affair.
"""
