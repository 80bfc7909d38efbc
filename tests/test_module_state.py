"""All mutable state of modules is listed here, with the reason why it does not grow without bound."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import locum

ROOT = Path(locum.__file__).parent

#: Module-level names that a function changes, with the bound on their size.
STATE = {
    "execution/fast/cuda_graph.py: _kept": "weak references to recorded graphs, at most MOST_GRAPHS",
    "execution/fast/cuda_graph.py: _pools": "one memory pool for each of PyTorch's streams",
    "execution/fast/cuda_graph.py: _recorders": "one stream for each device",
    "execution/fast/execute.py: _known": "facts of programs, held as long as the program",
    "execution/fast/plan_cache.py: _blueprints": "a bounded cache of 1,024 entries",
    "execution/fast/plan_cache.py: _plans": "a bounded cache of 1,024 entries",
    "execution/fast/symbolic/reuse.py: _lowered": "a bounded cache of 1,024 entries",
    "graph/labels.py: _given": "names of nodes, held as long as the node",
    "graph/node.py: _pool": "interned nodes, held weakly",
    "graph/node.py: _process": "one text for each process",
    "languages/formulas.py: _MADE": "interned formulas, held weakly",
    "rasp/handles.py: _handles": "handles of nodes, held weakly",
    "shared_state.py: _locks": "locks, held weakly",
    "torch/table.py: TABLE": "one row for each operation, filled by imports",
    "torch/usage.py: _graphs": "compiled graphs, held weakly",
}
#: Functions with arguments whose results are kept without a limit, with the finite set of arguments.
UNLIMITED_CACHES = {
    "execution/fast/steps/backends.py: _ieee_backend": "devices",
    "execution/fast/steps/backends.py: _numpy_backend": "dtypes",
    "execution/fast/steps/backends.py: _torch_backend": "dtypes and devices",
    "execution/fast/steps/magnitude.py: promote": "pairs of dtypes",
    "execution/types.py: _combined": "operations and sets of types",
    "languages/syntax.py: _parser": "grammars",
    "paper/proven_claims.py: prove_instance": "claims of the statements",
    "torch/translation.py: _signature": "constructions in the table",
}
#: Methods that change a container.
CHANGES = {
    "add",
    "append",
    "appendleft",
    "clear",
    "discard",
    "extend",
    "get_or_make",
    "insert",
    "move_to_end",
    "pop",
    "popitem",
    "popleft",
    "put",
    "remove",
    "setdefault",
    "update",
}


def functions(tree: ast.Module) -> Iterator[ast.FunctionDef]:
    return (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef))


def module_names(tree: ast.Module) -> set[str]:
    """Return the names that a module assigns at its top level."""
    names = set()
    for statement in tree.body:
        targets = statement.targets if isinstance(statement, ast.Assign) else []
        if isinstance(statement, ast.AnnAssign):
            targets = [statement.target]
        parts = [part for target in targets for part in ast.walk(target)]
        names |= {part.id for part in parts if isinstance(part, ast.Name)}
    return names


def changed_names(tree: ast.Module) -> set[str]:
    """Return the names of a module that one of its functions assigns or changes in place."""
    known, changed = module_names(tree), set[str]()
    for function in functions(tree):
        local = {argument.arg for argument in ast.walk(function.args) if isinstance(argument, ast.arg)}
        declared = {
            name for node in ast.walk(function) if isinstance(node, ast.Global) for name in node.names
        }
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                local |= {node.id} - declared
        changed |= declared
        for node in ast.walk(function):
            target: ast.AST | None = None
            if isinstance(node, ast.Subscript) and isinstance(node.ctx, (ast.Store, ast.Del)):
                target = node.value
            elif (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Attribute)
                and node.func.attr in CHANGES
            ):
                target = node.func.value
            if isinstance(target, ast.Name) and target.id in known - local:
                changed.add(target.id)
    return changed


def unlimited_caches(tree: ast.Module) -> set[str]:
    """Return the functions with arguments whose cache has no limit."""
    found = set()
    for function in functions(tree):
        decorators = {ast.unparse(decorator) for decorator in function.decorator_list}
        unlimited = {"cache", "functools.cache", "lru_cache(maxsize=None)"} & decorators
        if unlimited and (function.args.args or function.args.kwonlyargs):
            found.add(function.name)
    return found


def trees() -> Iterator[tuple[str, ast.Module]]:
    for path in sorted(ROOT.rglob("*.py")):
        yield path.relative_to(ROOT).as_posix(), ast.parse(path.read_text(encoding="utf-8"))


def test_changes_are_found() -> None:
    tree = ast.parse(
        "a, b = 1, 2\nkept = {}\ntable = []\ncount = 0\nfine = {}\n"
        "def f(x):\n kept[x] = 1\n table.append(x)\n fine = {}\n fine[x] = 2\n"
        "def g():\n global count\n count += 1\n"
        "@functools.cache\ndef h(x): return x\n@cache\ndef once(): return 1\n"
    )
    assert changed_names(tree) == {"kept", "table", "count"}
    assert unlimited_caches(tree) == {"h"}


def test_all_mutable_state_is_listed() -> None:
    found = {f"{path}: {name}" for path, tree in trees() for name in changed_names(tree)}
    assert found == set(STATE)


def test_all_unlimited_caches_are_listed() -> None:
    found = {f"{path}: {name}" for path, tree in trees() for name in unlimited_caches(tree)}
    assert found == set(UNLIMITED_CACHES)
