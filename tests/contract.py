"""The numbered lines of the hooks contract, which tests name by ``@pytest.mark.contract("5.4")``, and their table."""

from __future__ import annotations

import ast
import collections
from pathlib import Path

# What each line is about; the words are for the table only.
LINES = {
    "0.1": "None keeps, a value replaces",
    "0.2": "global hooks first, then in order of registration; prepend",
    "0.3": "firing goes over a snapshot",
    "0.4": "handles: call, remove, with",
    "0.5": "a hook that raises: type, note, nothing half done",
    "0.6": "bad registrations are refused and register nothing",
    "0.7": "thread of backward, stream of the node's forward; no synchronisation",
    "0.8": "no reference cycles",
    "0.9": "grad mode inside hooks",
    "0.10": "without hooks, one truth test",
    "1.1": "Tensor.register_hook and its handle",
    "1.2": "once per pass, with the sum, before .grad changes",
    "1.3": "hooks chain",
    "1.4": "leaves, intermediates, roots",
    "1.5": "under autograd.grad; never where the pass does not come",
    "1.6": "checks of returned gradients",
    "1.7": "several outputs; None flows on",
    "1.8": "in-place changes",
    "1.9": "copies have no hooks",
    "1.10": "autograd.RemovableHandle",
    "1.11": "retain_grad",
    "1.12": "post-accumulate hooks",
    "2.1": "hooks of nodes, and the order at a node",
    "2.2": "names, edges and sequence of nodes",
    "2.3": "hooks over several tensors",
    "2.4": "hooks of saved tensors; edges; versions",
    "2.5": "backward of one element needs no gradient",
    "2.6": "changed and freed saved tensors",
    "3.1": "FunctionCtx",
    "3.2": "grad mode in forward and backward",
    "3.3": "unused and non-differentiable outputs",
    "3.4": "wrong gradients are named",
    "3.5": "inputs returned; mark_dirty",
    "4.1": "forward pre-hooks",
    "4.2": "forward hooks",
    "4.3": "always_call",
    "4.4": "module.forward fires nothing",
    "5.1": "full backward hooks replace grad_input",
    "5.2": "the entries of grad_input and grad_output",
    "5.3": "full backward pre-hooks; aligned",
    "5.4": "moments of backward hooks; no input that requires grad",
    "5.5": "hooks of the forward; when none fires",
    "5.6": "views, and in-place changes refused",
    "5.7": "register_backward_hook",
    "5.8": "keyword arguments and structures",
    "5.9": "hooks under checkpointing",
    "6": "hooks of all modules",
    "7.1": "hooks of saving",
    "7.2": "hooks of loading",
    "7.3": "other values; PyTorch's private names",
    "7.4": "forms told apart at registration",
    "7.5": "one error, and nothing loaded",
    "8.1": "nn.hooks.RemovableHandle and copies",
    "8.2": "PyTorch's hook dictionaries",
    "8.3": "pickling hooked modules",
    "9.1": "Hook: construction",
    "9.2": "Hook.register",
    "9.3": "Hook.deregister",
    "9.4": "trainexec and evalexec",
    "9.5": "the module holds its Hook weakly",
    "9.6": "copies and pickles leave the Hook behind",
    "9.7": "ContextualHook and StateHook",
    "10": "threads",
}


def named_lines() -> dict[str, list[str]]:
    """Return for each line that a test names, here or wherever tests are, where these tests are: ``file::function``."""
    found: dict[str, list[str]] = collections.defaultdict(list)
    folder = Path(__file__).parent
    for path in sorted(folder.rglob("test_*.py")):
        for function in ast.walk(ast.parse(path.read_text())):
            if not isinstance(function, ast.FunctionDef):
                continue
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and ast.unparse(mark.func) in {"contract", "pytest.mark.contract"}:
                    found[ast.literal_eval(mark.args[0])].append(f"{path.relative_to(folder)}::{function.name}")
    return found


def table(terminal) -> list[str]:
    """Return the table "line of the contract, its tests" of what pytest's terminal reporter has seen."""
    results: dict[str, dict[str, collections.Counter[str]]] = {line: {} for line in LINES}
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminal.stats.get(outcome, ()):
            for name, line in getattr(report, "user_properties", ()):
                if name == "contract":
                    test = report.nodeid.removeprefix("tests/").partition("[")[0]
                    results.setdefault(line, {}).setdefault(test, collections.Counter())[outcome] += 1
    rows = []
    for line, tests in results.items():
        rows.append(f"{line:5} {LINES.get(line, 'no such line')}")
        for test, outcomes in tests.items():
            rows.append(f"      {test}: " + ", ".join(f"{count} {outcome}" for outcome, count in outcomes.items()))
        if not tests:
            rows.append("      no test in this run")
    return rows
